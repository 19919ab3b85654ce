"""A service in asyncio: slow requests delay no others, and SIGTERM ends the server in order."""

import asyncio
import multiprocessing

import outlive


async def answer(request):
    await asyncio.sleep(request.value)  # the work: a motor, a web page, a call to another service
    if not request.is_cancelled:
        request.respond(f"done in {request.value} s")


async def answer_all(server):
    tasks = set()  # asyncio itself keeps no task alive
    async for request in server:
        task = asyncio.create_task(answer(request))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def serve():
    with outlive.Node("worker") as node, outlive.Shutdown() as shutdown:
        serving = asyncio.create_task(answer_all(outlive.Server(node, "/work")))
        asked = asyncio.create_task(shutdown.asked())
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)


async def ask(worker):
    with outlive.Node("boss") as node:
        client = outlive.Client(node, "/work")
        await client.wait_for_server_async()
        never = asyncio.create_task(client.call_async(3600))
        answers = await asyncio.gather(*(client.call_async(n / 10) for n in range(3)))
        worker.terminate()
        try:
            await never
        except outlive.ServerDied:
            print(f"asyncio: {len(answers)} answers, the last {answers[-1]}; then the server left")


def work():
    asyncio.run(serve())


if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work)
    worker.start()
    asyncio.run(ask(worker))
    worker.join()
