"""A process is killed while it holds a lock; the next one repairs what it left."""

import multiprocessing
import os
import signal

import numpy as np

import outlive

ACCOUNT = np.dtype([("left", "i8"), ("right", "i8")])  # their sum is always 100


def open_account(node):
    return outlive.RobustMutex(
        node, "/account", ACCOUNT, type_name="example/Account", initial=(60, 40)
    )


def die_inside():
    with open_account(outlive.Node("clumsy")) as account:
        account["left"] -= 10  # half of a transfer
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    clumsy = multiprocessing.get_context("spawn").Process(target=die_inside)
    clumsy.start()
    clumsy.join()
    mutex = open_account(outlive.Node("careful"))
    with mutex as account:
        if mutex.owner_died:
            print(f"its owner died: left {account['left']}, right {account['right']}")
            account["right"] = 100 - account["left"]  # repair
            mutex.mark_consistent()
        print(f"robust lock: left {account['left']}, right {account['right']}")
