"""A member of a history in Python; see `member/mod.rs`, whose words and answers are the same.

Its arguments: the root. Steps come on standard input, answers go to standard output.
"""

import itertools
import os
import queue
import resource
import socket
import sys
import tempfile
import threading
import time
from collections import Counter

import numpy as np

import outlive
from words import PARTS, UNSAID, WORDS_MIN, Reply, Seen, content

KINDS = {"Refused": 2, "Timeout": 3, "ServerDied": 4, "Corrupt": 5}
IDS = 80  # see `step.rs`
AGAIN_CALLS = 1100  # see `member/limits.rs`
TEMP = tempfile.gettempdir()  # tries it with a file, which a limit may refuse

root = sys.argv[1]


class Things(dict):
    """A wait that had not begun when another thread closed what it waits on finds that, closed."""

    def __missing__(self, handle):
        return closed[handle]


# `own`: what only the thread that took it may use: its kind, it, what it is of, the thread.
things, closed, own, sent, leaked, was_limited, moved = Things(), {}, {}, {}, [], [], []
told = threading.Lock()


class AsTold(Exception):
    """One that the history asked for."""


class Fails(Exception):
    """Not of the library: its kind and text."""


def say(line):
    with told:
        sys.stdout.write(line)
        sys.stdout.flush()


def wait_of(step):
    return step.get("ms", 0) / 1000


def kind(step):
    return {"type": np.uint32 if step.get("type") == 1 else np.uint64, "shape": (None,)}


def payload(step, array):
    """As the object's type: of type 1 the same bytes are more numbers."""
    return array.view(np.uint32) if step.get("type") == 1 else array


def look_at(sample):
    return Seen(
        sample.array, sample.seq, sample.lost_before, sample.is_borrowed, tuple(sample.publisher)
    )


class Port:
    """An object of the library with its step, which says its type."""

    def __init__(self, it, step):
        self.it, self.step = it, step


def number_of(handle):
    return sent.get(handle, 0)


def count_up(handle):
    sent[handle] = sent.get(handle, 0) + 1


def node_of(step):
    return things[step["node"]]


# Steps that open something: what they make.


def node(step, reply):
    made = outlive.Node(f"n{step['new']}", domain="h", root=root_from_here())
    reply.id = (made.id, 0)
    return made


def publisher(step, reply):
    made = outlive.Publisher(
        node_of(step),
        f"/h/topic{step['topic']}",
        depth=step["depth"],
        volatile=step["volatile"] == 1,
        reliable_timeout=step["wait_ms"] / 1000,
        **kind(step),
    )
    reply.id = made.id
    return Port(made, step)


def subscriber(step, reply):
    made = outlive.Subscriber(
        node_of(step),
        f"/h/topic{step['topic']}",
        history=step["history"],
        reliable=step["reliable"] == 1,
        borrows=step["borrows"],
        **kind(step),
    )
    return Port(made, step)


def producer(step, reply):
    bound = {"bound_bytes": step["bound"]} if step["bound"] else {}
    made = outlive.Producer(node_of(step), f"/h/queue{step['queue']}", **bound, **kind(step))
    reply.id = made.id
    return Port(made, step)


def consumer(step, reply):
    return Port(outlive.Consumer(node_of(step), f"/h/queue{step['queue']}", **kind(step)), step)


def service(step):
    return (
        node_of(step),
        f"/h/service{step['service']}",
        (kind(step)["type"], (None,)),
        (np.uint64, (None,)),
    )


def client(step, reply):
    return Port(outlive.Client(*service(step), resume=step["resume"] == 1), step)


def server(step, reply):
    return Port(outlive.Server(*service(step)), step)


def mutex(step, reply):
    return outlive.RobustMutex(node_of(step), f"/h/mutex{step['mutex']}", np.uint64, (4,))


def rwlock(step, reply):
    return outlive.RobustRwLock(node_of(step), f"/h/rwlock{step['mutex']}", np.uint64, (4,))


def pi_mutex(step, reply):
    name = f"/h/pi{step['mutex']}"
    return outlive.RobustMutex(node_of(step), name, np.uint64, (4,), inherits_priority=True)


def condvar(step, reply):
    return outlive.RobustCondition(node_of(step), f"/h/condvar{step['condvar']}")


def semaphore(step, reply):
    return outlive.RobustSemaphore(
        node_of(step), f"/h/semaphore{step['semaphore']}", step["permits"]
    )


def set_(step, reply):
    return outlive.LocklessSet(node_of(step), f"/h/set{step['set']}", step["capacity"])


def watch(step, reply):
    return node_of(step).watch(step["target"])


OPENS = [node, publisher, subscriber, producer, consumer, client, server, mutex, rwlock, watch]
OPENS += [pi_mutex, condvar, semaphore, set_]
OPENS = {step.__name__.rstrip("_").replace("_", "-"): step for step in OPENS}


# The others.


def publish(step, reply):
    on = step["on"]
    port = things[on]
    for _ in range(step["count"]):
        port.it.publish(payload(port.step, content(on, number_of(on), step["words"])))
        count_up(on)
        reply.value += 1


def insist(step, reply):
    publish({**step, "count": 1}, reply)


def loan(step, reply):
    port = things[step["on"]]
    count = max(step["words"], WORDS_MIN) * (2 if port.step.get("type") == 1 else 1)
    own[step["new"]] = ("loan", port.it.loan(count), step["on"], step["thread"])


def commit(step, reply):
    _, it, of, _ = own.pop(step["on"])
    array = it.array.view(np.uint64)
    array[:] = content(of, number_of(of), len(array))
    del array
    it.publish()
    count_up(of)


def wait_for_news(it, step):
    """Waits for a message or an event; a receiving call goes on waiting after an event. How long that
    is to wait yet."""
    if step["ms"] < 1000:
        return step["ms"] / 1000
    outlive.WaitSet().wait([it], wait_of(step))
    return 0


def take_all(step, reply, call, see):
    it = things[step["on"]].it
    wait = wait_for_news(it, step)
    try:
        for _ in range(step["max"]):
            got = call(it, wait)
            wait = 0
            if got is None:
                reply.value = 1
                break
            reply.seen.append(see(got))
            got = None
    finally:
        reply.news += it.events()


def receive(step, reply):
    """What could not be opened for a while is tried again after AGAIN_CALLS calls."""
    for _ in range(AGAIN_CALLS if was_limited and step["ms"] < 1000 else 1):
        left = step["max"] - len(reply.seen)
        if left > 0:
            reply.value = 0
            take_all({**step, "max": left}, reply, outlive.Subscriber.receive, look_at)


def take(step, reply):
    sample = things[step["on"]].it.receive(0)
    if sample is not None:
        seen = look_at(sample)
        reply.seen.append(seen)
        things[step["new"]] = (sample, seen)


def check(step, reply):
    sample, seen = things[step["on"]]
    reply.value = int(look_at(sample).same(seen))


def send(step, reply):
    on = step["on"]
    port = things[on]
    for _ in range(step["count"]):
        port.it.send(payload(port.step, content(on, number_of(on), step["words"])), 0)
        count_up(on)
        reply.value += 1


def look_into(received):
    return Seen(received.array, id=tuple(received.producer))


def get(step, reply):
    def acknowledged(received):
        with received:
            return look_into(received)

    take_all(step, reply, outlive.Consumer.borrow, acknowledged)


def hold(step, reply):
    received = things[step["on"]].it.borrow(0)
    if received is not None:
        reply.seen.append(look_into(received))
        things[step["new"]] = received


class Held:
    """A lock that a thread has; ends as a `with` does."""

    def __init__(self, lock, guard, data):
        self.lock, self.guard, self.data = lock, guard, data

    def end(self, exception=None):
        self.data = None
        of = type(exception) if exception else None
        (self.guard or self.lock).__exit__(of, exception, None)


def lock(step, reply):
    it = things[step["on"]]
    wait = wait_of(step)
    if isinstance(it, outlive.RobustRwLock):
        guard = it.write(wait)
        held = Held(it, guard, guard.__enter__())
    else:
        if not it.acquire(wait):
            raise Fails("Timeout" if wait else "WouldBlock", "it is held")
        held = Held(it, None, it.data)
    inherit(step["new"], held, step, reply)


def inherit(handle, held, step, reply):
    """What a dead owner left is made whole, given up, or kept as it is."""
    it = held.lock
    reply.data = held.data.tolist()
    reply.value = int(it.owner_died)
    if reply.value and step["heal"] == 1:
        held.data[:] = held.data[0]
        it.mark_consistent()
    if reply.value and step["heal"] == 0:
        held.end()
    else:
        own[handle] = ("held", held, step["on"], step["thread"])


def read(step, reply):
    it = things[step["on"]]
    guard = it.read(wait_of(step))
    held = Held(it, guard, guard.__enter__())
    reply.data = held.data.tolist()
    own[step["new"]] = ("held", held, step["on"], step["thread"])


answers = Counter()  # steps of each thread


def is_asleep(tid):
    """Whether that thread of ours sleeps on a word that is shared: others are the interpreter's."""
    with open(f"/proc/self/task/{tid}/syscall") as file:
        call, *args = file.read().split()
    return call in ("202", "98") and int(args[1], 16) & 0x80 == 0


def say_asleep(me, thread, before):
    """Once it has let go what it was to let go; or is back already."""
    until = time.monotonic() + 5
    while time.monotonic() < until and answers[me] == before and not is_asleep(thread.native_id):
        time.sleep(0.001)
    say(Reply().line(me, "Asleep", "", (0, 0)))


def sleep(step, reply):
    """Says 1 for a death and 2 for a notification."""
    _, held, _, _ = own.pop(step["guard"])
    held.data = None
    notified = things[step["on"]].wait(held.lock, wait_of(step))
    held.data = held.lock.data
    inherit(step["guard"], held, step, reply)
    if not reply.value:
        reply.value = 2 * int(notified)


def notify(step, reply):
    it = things[step["on"]]
    it.notify_all() if step["all"] == 1 else it.notify()


def remove_lock(step, reply):
    node_of(step).remove_lock(f"/h/{['mutex', 'rwlock', 'pi'][step['rw']]}{step['mutex']}")


def acquire(step, reply):
    """Takes a permit: its number, and how many are free then."""
    it = things[step["on"]]
    wait = wait_of(step)
    permit = it.acquire(wait)
    if permit is None:
        raise Fails("Timeout" if wait else "WouldBlock", "all are held")
    reply.value = int(permit.owner_died)
    reply.data = [permit.index, it.available]
    own[step["new"]] = ("permit", permit, step["on"], step["thread"])


def insert(step, reply):
    reply.value = int(things[step["on"]].insert(step["id"]))


def remove(step, reply):
    reply.value = int(things[step["on"]].remove(step["id"]))


def ids(step, reply):
    it = things[step["on"]]
    reply.data = it.ids() + [id for id in range(IDS) if id in it]


# A thread's wait set, and a descriptor on which nothing ever comes.
of_thread = threading.local()


def wait(step, reply):
    if not hasattr(of_thread, "set"):
        of_thread.set, of_thread.silent = outlive.WaitSet(), socket.socketpair()
    handles = [handle for handle in (step["on"], step["and"], step["or"]) if handle]
    its = [things[handle] for handle in handles]
    members = [it.it if isinstance(it, Port) else it for it in its]
    silent = of_thread.silent[:1] if step["fd"] == 1 else ()
    ready = of_thread.set.wait([*members, *silent], wait_of(step))
    reply.data = [handle for handle, it in zip(handles, members) if any(it is r for r in ready)]
    if len(reply.data) < len(ready):
        raise Fails("Failed", "a wait set names the descriptor")


def write(step, reply):
    held = own[step["on"]][1]
    held.data[: 2 if step["half"] == 1 else 4] = step["value"]


def ask(step, reply):
    port = things[step["on"]]
    body = payload(port.step, content(step["on"], step["new"], step["words"]))
    ticket = port.it.send(body, 0 if step["late"] == 1 else None)
    reply.value = ticket
    things[step["new"]] = (ticket, step["on"])


def call(step, reply):
    port = things[step["on"]]
    body = payload(port.step, content(step["on"], 0, step["words"]))
    reply.seen.append(Seen(port.it.call(body, wait_of(step))))


def answered(answer):
    try:
        return Seen(answer.value, answer.ticket, int(answer.is_last))
    except outlive.Error as e:
        seen = Seen(None, answer.ticket, KINDS.get(type(e).__name__, 6))
        seen.whole = True
        return seen


def replies(step, reply):
    it = things[step["on"]].it
    wait = wait_of(step)
    while (answer := it.receive(wait)) is not None:
        reply.seen.append(answered(answer))
        wait = 0


def reply_for(step, reply):
    ticket, of = things[step["on"]]
    answer = things[of].it.receive(wait_of(step), ticket=ticket)
    if answer is None:
        raise Fails("Timeout", "no reply came")
    reply.seen.append(answered(answer))


def cancel(step, reply):
    ticket, of = things[step["on"]]
    things[of].it.cancel(ticket)


class InHand:
    def __init__(self, it, of, seen):
        self.it, self.of, self.ticket, self.parts = it, of, seen.n, 0


def serve(step, reply):
    request = things[step["on"]].it.receive(wait_of(step))
    if request is not None:
        # A request does not say its number here.
        seen = Seen(request.value, seq=UNSAID)
        reply.seen.append(seen)
        things[step["new"]] = InHand(request, step["on"], seen)


def body_of(hand, step):
    n = hand.ticket * PARTS + hand.parts
    hand.parts += 1
    return content(hand.of, n, step.get("words", 0))


def part(step, reply):
    hand = things[step["on"]]
    hand.it.respond_part(body_of(hand, step))


def answer(step, reply):
    hand = things.pop(step["on"])
    hand.it.respond(body_of(hand, step))


def refuse(step, reply):
    things.pop(step["on"]).it.refuse("as told")


def wanted(step, reply):
    hand = things[step["on"]]
    hand.parts += 1
    reply.value = int(not hand.it.is_cancelled)


def await_(step, reply):
    reply.value = int(things[step["on"]].wait(wait_of(step)))


def let_go(step, exception=None):
    """Of what can be closed every second one is, of the others the last reference goes."""
    on = step["on"]
    if on in own:
        what, it, *_ = own.pop(on)
        if what == "held":
            it.end(exception)
        elif what == "permit":
            let_go_of_permit(on, it, exception)
        elif exception:
            in_with(it, exception)
        else:
            it.drop()
        return
    it = things.pop(on)
    if exception and isinstance(it, outlive.Received):
        in_with(it, exception)
    elif isinstance(it, Port) and (on % 2 or isinstance(it.it, outlive.Server)):
        it.it.close()  # a request in hand keeps its server


def let_go_of_permit(on, it, exception):
    """Every second one by its last reference."""
    if exception:
        in_with(it, exception)
    elif on % 2:
        it.release()


def in_with(it, exception):
    try:
        with it:
            raise exception
    except AsTold:
        pass


def close(step, reply):
    it = closed[step["on"]] = things.pop(step["on"])
    (it.it if isinstance(it, Port) else it).close()


def drop(step, reply):
    let_go_of_loans(step["on"])
    let_go(step)


def unwind(step, reply):
    let_go_of_loans(step["on"])
    let_go(step, AsTold())


def let_go_of_loans(publisher):
    """A publisher leaves the topic once its loans are gone, also those that were leaked."""
    leaked[:] = [it for it in leaked if not is_loan_of(it, publisher)]


def is_loan_of(it, publisher):
    return isinstance(it, tuple) and it[0] == "loan" and it[2] == publisher


def leak(step, reply):
    on = step["on"]
    leaked.append(own.pop(on) if on in own else things.pop(on))


def clean(step, reply):
    outlive.Domain("h", root=root_from_here()).clean()


def audit(step, reply):
    faults = outlive.Domain("h", root=root_from_here()).audit().faults
    if faults:
        raise Fails("Failed", "; ".join(faults))


def refused(handle, it):
    """How an inherited object answers in a forked child."""
    body = content(handle, 0, 8)
    port = it.it if isinstance(it, Port) else it
    calls = {
        outlive.Node: lambda: port.watch(port.id),
        outlive.Publisher: lambda: port.publish(payload(it.step, body)),
        outlive.Subscriber: lambda: port.receive(0),
        outlive.Producer: lambda: port.send(payload(it.step, body), 0),
        outlive.Consumer: lambda: port.borrow(0),
        outlive.Client: lambda: port.send(payload(it.step, body)),
        outlive.Server: lambda: port.receive(0),
        outlive.RobustMutex: lambda: port.acquire(0),
        outlive.RobustRwLock: lambda: port.acquire_read(0),
        outlive.RobustSemaphore: lambda: port.acquire(0),
        outlive.LocklessSet: lambda: port.remove(1) or port.insert(1),
    }
    used = calls.get(type(port))
    if used is None:
        return None
    try:
        used()
        return "ok"
    except outlive.Error as e:
        return type(e).__name__


def child(how):
    wrong = []
    if how == 1:
        os.execv("/bin/true", ["/bin/true"])
    if how in (2, 3):
        for handle, it in things.items():
            said = refused(handle, it)
            # One with a message in hand says that first, as does one in whose call a thread was.
            if said not in (None, "ForkedChild", "TooManyBorrows", "WouldBlock"):
                wrong.append(f"in a forked child {handle} gives {said}")
    if how in (3, 4):
        own.clear()
        samples = [it for it in things.values() if isinstance(it, tuple)]
        things.clear()
        for sample, seen in (it for it in samples if isinstance(it[0], outlive.Sample)):
            if not look_at(sample).same(seen):
                wrong.append("a sample has changed in a forked child")
    return "; ".join(wrong)


def fork(step, reply):
    how = step["how"]
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 3
        try:
            os.close(ours)
            os.write(theirs, child(how).encode())
            os.close(theirs)
            status = 0
            if how == 5:
                for fd in range(3):
                    os.close(fd)
                time.sleep(2)
        finally:
            os._exit(status)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        wrong = pipe.read()
    if how != 5:
        reply.value = os.waitpid(pid, 0)[1]
    if wrong:
        raise Fails("Failed", wrong)


def chdir(step, reply):
    """To another directory; see `change_directory` in `member/shared.rs`."""
    gone = os.path.join(TEMP, f"gone-{os.getpid()}")
    if step["to"] == 2:
        os.mkdir(gone)
    os.chdir(["/", os.path.dirname(root), gone][step["to"]])
    if step["to"] == 2:
        os.rmdir(gone)
    moved.append(step["to"])


def root_from_here():
    """The root, by a relative path where there is one."""
    return os.path.relpath(root) if moved and moved[-1] != 2 else root


def set_limit(what, to):
    which = resource.RLIMIT_FSIZE if what else resource.RLIMIT_NOFILE
    most = resource.getrlimit(which)[1]
    resource.setrlimit(which, (to if 0 <= to < most or most < 0 else most, most))


def is_free(fd):
    return not os.path.lexists(f"/proc/self/fd/{fd}")


def limit(step, reply):
    """Of descriptors to what is left, of a file to a number of KiB; see `descriptors` in `limits.rs`."""
    was_limited.append(step["what"])
    free = itertools.islice(filter(is_free, itertools.count()), step["left"], None)
    set_limit(step["what"], step["left"] * 1024 if step["what"] else next(free))


def unlimit(step, reply):
    set_limit(step["what"], -1)
    time.sleep(0.3)


def priority(step, reply):
    """The calling thread's, and its processors; where that is not allowed it goes on as it was."""
    try:
        os.sched_setaffinity(0, {0} if step["one"] else range(os.cpu_count()))
        policy = os.SCHED_FIFO if step["fifo"] else os.SCHED_OTHER
        os.sched_setscheduler(0, policy, os.sched_param(step["fifo"]))
    except OSError:
        pass


DOES = [publish, insist, loan, commit, receive, take, check, send, get, hold, lock, read, write, ask, call]
DOES += [replies, reply_for, cancel, serve, part, answer, refuse, wanted, drop, unwind, leak, clean]
DOES += [audit, fork, limit, unlimit, chdir, priority, close, sleep, notify, remove_lock, acquire]
DOES += [insert, remove, ids, wait]
DOES = {step.__name__.replace("_", "-"): step for step in DOES} | {"await": await_}


def do(step, reply):
    if step["verb"] in OPENS:
        things[step["new"]] = OPENS[step["verb"]](step, reply)
    else:
        DOES[step["verb"]](step, reply)


def act(step):
    reply, outcome, text = Reply(), "ok", ""
    cpu, wall = time.thread_time_ns(), time.monotonic_ns()
    try:
        do(step, reply)
    except Fails as e:
        outcome, text = e.args
    except outlive.Error as e:
        outcome, text = type(e).__name__, str(e)
    except BaseException as e:
        outcome, text = "Panic", f"{type(e).__name__}: {e}"
    took = (time.thread_time_ns() - cpu) // 1000, (time.monotonic_ns() - wall) // 1000
    say(reply.line(step["thread"], outcome, text, took))
    answers[step["thread"]] += 1


def run(steps, me):
    while (step := steps.get())["verb"] not in ("end", "crash"):
        act(step)
    exception = AsTold() if step["verb"] == "crash" else None
    for handle in [handle for handle, it in own.items() if it[3] == me]:
        let_go({"on": handle}, exception)


def parse(line):
    who, verb, *args = line.split()
    member, thread = who.split(".")
    step = {name: int(value) for name, value in (arg.split("=") for arg in args)}
    return {**step, "verb": verb, "thread": int(thread)}


def dispatch(main):
    threads = {0: (main, threading.main_thread())}
    for line in sys.stdin:
        step = parse(line)
        me, verb = step["thread"], step["verb"]
        if verb == "exit":
            os._exit(0)
        elif verb == "quit":
            step["verb"] = "end"
            for steps, thread in reversed(threads.values()):
                steps.put(step)
                if steps is not main:
                    thread.join()
            return
        elif verb == "thread":
            steps = queue.SimpleQueue()
            thread = threading.Thread(target=run, args=(steps, step["new"]), daemon=True)
            thread.start()
            threads[step["new"]] = (steps, thread)
            say(Reply().line(me, "ok", "", (0, 0)))
        elif verb in ("end", "crash"):
            steps, thread = threads.pop(me)
            steps.put(step)
            thread.join()
            say(Reply().line(me, "ok", "", (0, 0)))
        else:
            steps, thread = threads[me]
            before = answers[me]
            steps.put(step)
            if verb == "sleep":
                say_asleep(me, thread, before)
    os._exit(0)


if __name__ == "__main__":
    first = queue.SimpleQueue()
    threading.Thread(target=dispatch, args=(first,), daemon=True).start()
    run(first, 0)
