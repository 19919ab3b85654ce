"""Producers in processes of their own, one consumer; without it a send says that nobody listens."""

import multiprocessing

import outlive

PRODUCERS, MESSAGES = 3, 100


def produce(me):
    queue = outlive.Queue(outlive.Node("producer"), "/commands")
    queue.producer().wait_for_consumer()
    for number in range(MESSAGES):
        queue.put({"producer": me, "number": number})


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    producers = [context.Process(target=produce, args=(i,)) for i in range(PRODUCERS)]
    for producer in producers:
        producer.start()
    node = outlive.Node("consumer")
    try:
        outlive.Queue(node, "/nobody").put("x")
    except outlive.OwnerDied as e:
        print(f"without a consumer: {e}")
    commands = outlive.Queue(node, "/commands")
    expected = [0] * PRODUCERS
    for _ in range(PRODUCERS * MESSAGES):
        command = commands.get()
        assert command["number"] == expected[command["producer"]], "out of order"
        expected[command["producer"]] += 1
    for producer in producers:
        producer.join()
    print(f"many producers: {sum(expected)} messages of {PRODUCERS} producers, each in order")
