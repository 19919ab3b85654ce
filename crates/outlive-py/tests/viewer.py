"""A viewer before `outlive view`, for scripts/view_tests.py and the tests that are seen in it."""

import base64
import json
import struct
import time

import jsonschema
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from websockets.sync.client import connect

PATIENCE = 120  # ends what hangs; nothing is asserted about times


class Client:
    """Speaks foxglove.sdk.v1 as its specification says."""

    def __init__(self, port, protocol="foxglove.sdk.v1", **options):
        self.socket = connect(
            f"ws://127.0.0.1:{port}", subprotocols=[protocol], max_size=None, compression=None,
            ping_interval=None, **options).__enter__()
        assert self.socket.subprotocol == protocol
        self.channels, self.subscribed, self.statuses = {}, {}, []
        self.next = 1
        self.info = json.loads(self.socket.recv(PATIENCE))
        assert self.info["op"] == "serverInfo", self.info

    def ask(self, op, **more):
        self.socket.send(json.dumps({"op": op, **more}))

    def receive(self, timeout=PATIENCE):
        """The next message as (topic, time in ns, payload), or None for anything else."""
        got = self.socket.recv(timeout)
        if isinstance(got, bytes):
            opcode, subscription, time_ns = struct.unpack_from("<BIQ", got)
            assert opcode == 1
            return self.subscribed[subscription]["topic"], time_ns, got[13:]
        told = json.loads(got)
        if told["op"] == "advertise":
            self.channels |= {c["topic"]: c for c in told["channels"]}
        elif told["op"] == "unadvertise":
            gone = told["channelIds"]
            self.channels = {t: c for t, c in self.channels.items() if c["id"] not in gone}
        elif told["op"] == "status":
            self.statuses.append(told)
        else:
            raise AssertionError(told)
        return None

    def until(self, done, each=lambda message: None):
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, (sorted(self.channels), self.statuses)
            if message := self.receive():
                each(message)

    def subscribe(self, topic):
        channel, subscription = self.channels[topic], self.next
        self.next += 1
        self.subscribed[subscription] = channel
        self.ask("subscribe", subscriptions=[{"id": subscription, "channelId": channel["id"]}])
        return subscription

    def one_of_each(self, topics):
        """A message of each topic, decoded; of channels that are advertised meanwhile, too."""
        seen, end = {}, time.monotonic() + PATIENCE
        while missing := set(topics) - set(seen):
            assert time.monotonic() < end, (missing, self.statuses)
            for topic in set(topics) & set(self.channels):
                if self.channels[topic] not in self.subscribed.values():
                    self.subscribe(topic)
            if message := self.receive():
                seen[message[0]] = decode(self.channels[message[0]], message[2])
        return seen

    def close(self):
        self.socket.close()


def loosened(schema, missing, more=()):
    """JSON has no NaN, and viewers, which are JavaScript, no integers beyond 2^53. Of a table values
    may be `missing`. Of a list of types Foxglove shows nothing, so the schema itself has one."""
    if kind := schema.get("type"):
        more = {"number": ["null", "string"], "integer": ["string", *more]}.get(kind, more)
        schema = schema | {"type": [kind, *more]}
    if "items" in schema:
        schema = schema | {"items": loosened(schema["items"], missing, missing)}
    if "properties" in schema:
        fields = schema["properties"].items()
        schema = schema | {"properties": {n: loosened(field, missing) for n, field in fields}}
    return schema


def decode(channel, payload):
    """A message by its advertised schema alone; of FlatBuffers, both."""
    if channel["encoding"] == "json":
        assert channel["schemaEncoding"] == "jsonschema"
        value, schema = json.loads(payload), json.loads(channel["schema"])
        jsonschema.Draft202012Validator.check_schema(schema)
        is_table = channel["metadata"]["outlive.encoding"] == "arrow"
        jsonschema.validate(value, loosened(schema, ["null"] if is_table else []))
        return value
    if channel["encoding"] == "protobuf":
        pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(channel["schema"]))
        for file in files.file:
            pool.AddSerializedFile(file.SerializeToString())
        made = message_factory.GetMessageClass(pool.FindMessageTypeByName(channel["schemaName"]))
        return made.FromString(payload)
    if channel["encoding"] == "flatbuffer":
        assert channel["schemaEncoding"] == "flatbuffer"
        return base64.b64decode(channel["schema"]), payload
    assert (channel["encoding"], channel["schemaEncoding"]) == ("cdr", "ros2msg"), channel
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(channel["schema"], channel["schemaName"]))
    return store.deserialize_cdr(payload, channel["schemaName"])
