"""Files of `outlive view --rerun`, read by the package rerun-sdk; scripts/view-tests calls it."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pyarrow
from rerun.chunk import RrdReader

sys.path.append(str(Path(__file__).resolve().parents[1] / "crates/outlive-py/tests"))
from foreign import write_foreign  # noqa: E402

# That a file whose writer was killed has no end.
warnings.simplefilter("ignore")
VIEW, MATRIX = os.environ["VIEW"], os.environ["MATRIX"]
DIR = Path(sys.argv[1])
PATIENCE = 120  # ends what hangs; nothing is asserted about times
KINDS = ["picture", "lidar", "pose", "number", "state", "plan", "joints"]
COUNT = 60
ENTITIES = ["/picture", "/lidar", "/pose", "/number", "/state/seq", "/plan/goal",
            "/joints/tail/elbow/position"]


def entities(path):
    """By entity: all rows as (time in ns, {component: value})."""
    out = {}
    for chunk in RrdReader(path).stream():
        batch = chunk.to_record_batch()
        columns = {n: batch.column(n).to_pylist() for n in batch.schema.names if ":" in n}
        stamps = [0] * batch.num_rows
        if "time" in batch.schema.names:
            stamps = batch.column("time").cast(pyarrow.int64()).to_pylist()
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
        out.setdefault(str(chunk.entity_path), []).extend(zip(stamps, rows))
    return out


def numbers(rows):
    return [row["Scalars:scalars"][0] for _, row in rows]


def check(path, count):
    """All that is in the file is what was published; at least `count` of each."""
    at = entities(path)
    for entity in ENTITIES:
        assert len(at.get(entity, [])) >= count, (entity, len(at.get(entity, [])), count)
        stamps = [stamp / 1e9 for stamp, _ in at[entity]]
        assert stamps == sorted(stamps) and abs(stamps[-1] - time.time()) < PATIENCE, entity
    for _, row in at["/picture"]:
        pixels = bytes(row["Image:buffer"][0])
        form = row["Image:format"][0]
        assert (form["width"], form["height"]) == (64, 48), form
        assert pixels == bytes((i + pixels[0]) % 256 for i in range(64 * 48 * 3))
    for _, row in at["/lidar"]:
        points = row["Points3D:positions"]
        assert [p[0] for p in points] == list(range(100)) and {p[2] for p in points} == {-1}
    for _, row in at["/pose"]:
        assert row["Transform3D:translation"][0][1:] == [0.5, -1]
        assert row["Transform3D:quaternion"] == [[0, 0, 0, 1]]
    for entity, first in (("/number", 0.5), ("/state/seq", 0), ("/joints/tail/elbow/position", 0)):
        found = numbers(at[entity])
        assert found == [found[0] + i for i in range(len(found))], (entity, found)
        assert found[0] % 1 == first % 1 and found[-1] < COUNT
    assert {n for n in numbers(at["/state/volts"])} == {24.1}
    assert {row["TextDocument:text"][0] for _, row in at["/plan/goal"]} == {"döck"}
    return len(at), sum(map(len, at.values()))


def await_file(path, count, wanted=ENTITIES):
    """Until the file has `count` of each; a file that grows may end in the middle."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            at = entities(path)
            if all(len(at.get(entity, [])) >= count for entity in wanted):
                return
        except Exception as e:
            assert time.monotonic() < until, e
        assert time.monotonic() < until
        time.sleep(0.2)


# Of each third-party encoding, as foreign.py has it.
FOREIGN = {
    "/x/own/real": 7, "/x/own/mode": "Hold",
    "/x/protobuf/goal": "dock", "/x/protobuf/steps/1": 2, "/x/json/x": 0.5,
    "/x/cdr/x": 1.5, "/x/cdr/n/1": -8, "/x/flatbuffer/names/1": "ö",
    "/x/flatbuffer/next/seconds": 2.5, "/x/arrow/x/2": -2, "/x/arrow/mode/1": "hand",
}


def check_foreign():
    """What crates/outlive-py/tests/test_matrix.py sends from language to language."""
    path, at = DIR / "foreign.rrd", DIR / "foreign"
    at.mkdir(exist_ok=True)
    write_foreign(at)
    command = [f"{VIEW}/outlive-view", "/x/*", "--rate", "inf", "--rerun", str(path)]
    view = subprocess.Popen(command)
    writer = subprocess.Popen([MATRIX, str(at), "write"], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    started.extend([view, writer])
    assert writer.stdout.readline() == "ready\n"
    writer.stdin.write("7\n")
    writer.stdin.flush()
    await_file(path, 1, FOREIGN)
    view.send_signal(signal.SIGINT)
    assert view.wait(PATIENCE) == 0
    found = entities(path)
    for entity, expected in FOREIGN.items():
        [(_, row)] = found[entity]
        [value] = row["TextDocument:text" if isinstance(expected, str) else "Scalars:scalars"]
        assert value == expected, (entity, value)
    # The absent value of the second row.
    assert "/x/arrow/x/1" not in found, sorted(found)


started = []
try:
    paths = [DIR / "whole.rrd", DIR / "killed.rrd"]
    for path in paths:
        command = [f"{VIEW}/outlive-view", "--rate", "inf", "--rerun", str(path)]
        started.append(subprocess.Popen(command))
    feed = subprocess.Popen([f"{VIEW}/examples/feed", *(f"{k}:20:{COUNT}" for k in KINDS)],
                            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    started.append(feed)
    whole, killed = started[:2]
    await_file(paths[1], 5)
    killed.kill()
    await_file(paths[0], 30)
    whole.send_signal(signal.SIGINT)
    assert whole.wait(PATIENCE) == 0
    count, rows = check(paths[0], 30)
    check(paths[1], 5)
    again = subprocess.run(started[0].args, capture_output=True, text=True, timeout=PATIENCE)
    assert again.returncode == 1 and "--overwrite" in again.stderr, again
    feed.kill()
    check_foreign()
    print(f"view: rerun-sdk reads {count} entities and {rows} rows as they were published, "
          f"also of a file whose writer was killed; {len(FOREIGN)} values of every encoding")
finally:
    for process in started:
        process.kill()
        process.wait()
