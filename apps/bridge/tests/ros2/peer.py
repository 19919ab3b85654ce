"""What tests/ros2.rs talks to: a node of ROS 2 made of the packages zenoh-ros2-sdk and rosbags,
which know nothing of outlive. `router PORT` is the router that ROS 2 has; `node PORT FOLDER DOMAIN`
takes commands as lines of JSON, and reports what happens in the same way."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import zenoh

# The one field of what has none.
EMPTY = "structure_needs_at_least_one_member"

# Requests and responses, as the packages of ROS 2 have them. The package hashes no empty text.
NONE = "# none"
SERVICES = {
    "std_srvs/srv/Empty": (NONE, NONE),
    "std_srvs/srv/SetBool": ("bool data", "bool success\nstring message"),
    "std_srvs/srv/Trigger": (NONE, "bool success\nstring message"),
    "example_interfaces/srv/AddTwoInts": ("int64 a\nint64 b", "int64 sum"),
    "nav_msgs/srv/GetMap": (NONE, "nav_msgs/OccupancyGrid map"),
    "nav_msgs/srv/GetPlan": (
        "geometry_msgs/PoseStamped start\ngeometry_msgs/PoseStamped goal\nfloat32 tolerance",
        "nav_msgs/Path plan"),
    "nav_msgs/srv/SetMap": (
        "nav_msgs/OccupancyGrid map\ngeometry_msgs/PoseWithCovarianceStamped initial_pose",
        "bool success"),
    "sensor_msgs/srv/SetCameraInfo": (
        "sensor_msgs/CameraInfo camera_info", "bool success\nstring status_message"),
}

root = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(root / "scripts"))


def tell(**what):
    # In one piece: callbacks come from other threads.
    os.write(1, (json.dumps(what) + "\n").encode())


def router(port):
    config = zenoh.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", json.dumps([f"tcp/127.0.0.1:{port}"]))
    config.insert_json5("scouting/multicast/enabled", "false")
    # Killed, it would leave its file on the RAM disk.
    config.insert_json5("transport/shared_memory/enabled", "false")
    with zenoh.open(config):
        tell(ready=True)
        sys.stdin.read()


def eighths(value):
    """Numbers that are the same in decimal digits and in any float."""
    if isinstance(value, dict):
        return {key: eighths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [eighths(item) for item in value]
    return round(8 * value) / 8 if isinstance(value, float) else value


class Node:
    def __init__(self, port, folder):
        import xxhash
        import zenoh_ros2_sdk
        import recording_ros2
        from zenoh_ros2_sdk import attachment, message_registry, qos, session

        self.xxhash, self.sdk, self.ros = xxhash, zenoh_ros2_sdk, recording_ros2
        self.attachment, self.qos = attachment.Attachment, qos
        # The package would clone repositories; rosbags has the same definitions.
        message_registry.get_repository_for_package = lambda package: None
        for name in self.ros.store.fielddefs:
            package, kind, short = name.split("/")
            text = self.ros.store.generate_msgdef(name, ros_version=2)[0].split("=" * 80)[0]
            path = folder / package / kind / f"{short}.msg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        message_registry.get_registry().messages_dir = folder
        self.folder = folder
        os.environ["ZENOH_CONFIG_OVERRIDE"] = "transport/shared_memory/enabled=false"
        self.session = session.ZenohSession.get_instance("127.0.0.1", port)
        self.port = port
        self.publishers, self.got, self.numbers = {}, {}, {}
        self.servers, self.clients = {}, {}
        self.lock = threading.Lock()
        self.kept = [self.session.liveliness.declare_subscriber(
            "@ros2_lv/**", self.token, history=True)]
        tell(session=self.session.session_id)

    def define(self, types):
        """Types of the user's own, made known everywhere; of a service a pair."""
        from rosbags.typesys import get_types_from_msg

        for name, text in types.items():
            if "/srv/" in name:
                SERVICES[name] = text
                continue
            self.ros.store.register(get_types_from_msg(text, name))
            path = self.folder / f"{name}.msg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        hashes = {n: self.ros.store.hash_rihs01(n) for n in types if "/msg/" in n}
        tell(defined=hashes)

    def token(self, sample):
        key = str(sample.key_expr)
        parts = key.split("/")
        if parts[2] != self.session.session_id:
            there = sample.kind == zenoh.SampleKind.PUT
            gid = self.xxhash.xxh3_128_intdigest(key.encode()).to_bytes(16, "little")
            qos = None
            if len(parts) > 12:
                q = self.qos.QosProfile.decode(parts[12])
                qos = [q.reliability.name, q.durability.name, q.history_kind.name, q.history_depth]
            tell(token=key, there=there, gid=gid.hex(), qos=qos, ns=time.time_ns())

    def subscribe(self, topic, type, hash=None):
        def took(message):
            with self.lock:
                self.got.setdefault(topic, []).append(message)
            tell(took=topic)

        of = self.sdk.ROS2Subscriber(
            topic, type, took, router_port=self.port, domain_id=self.domain, type_hash=hash)
        self.kept.append(of)
        # The same once more without the package: what is attached.
        raw = self.session.session.declare_subscriber(of.keyexpr, lambda s: self.raw(topic, s))
        self.kept.append(raw)
        tell(subscribed=topic, key=of.keyexpr, hash=of.type_hash)

    def raw(self, topic, sample):
        a = self.attachment.from_bytes(sample.attachment.to_bytes())
        tell(attached=topic, seq=a.sequence_id, wall_ns=a.timestamp_ns, gid=a.gid.hex(),
             bytes=len(sample.attachment.to_bytes()), now_ns=time.time_ns())

    def listen(self, topic, type, who, depth=None):
        """A subscription, of TRANSIENT_LOCAL with a depth: then as rmw_zenoh makes it."""
        import zenoh.ext

        def took(sample):
            a = self.attachment.from_bytes(sample.attachment.to_bytes())
            message = self.session.store.deserialize_cdr(sample.payload.to_bytes(), type)
            tell(heard=who, value=self.unpack(message), seq=a.sequence_id)

        of = self.sdk.ROS2Publisher(topic, type, router_port=self.port, domain_id=self.domain)
        key = of.keyexpr
        of.close()
        if depth is None:
            self.kept.append(self.session.session.declare_subscriber(key, took))
        else:
            self.kept.append(zenoh.ext.declare_advanced_subscriber(
                self.session.session, key, took, subscriber_detection=True,
                history=zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=depth),
                recovery=zenoh.ext.RecoveryConfig(heartbeat=True)))
        tell(listens=who)

    def advertise(self, topic, type, hash=None, qos=None):
        of = self.sdk.ROS2Publisher(
            topic, type, router_port=self.port, domain_id=self.domain, type_hash=hash, qos=qos)
        self.publishers[topic] = of, type, []
        tell(advertised=topic, hash=of.type_hash)

    def keep(self, topic, type, count):
        """A publisher that keeps its messages (TRANSIENT_LOCAL), as rmw_zenoh does it."""
        import zenoh.ext

        entity, keyexpr = self.sdk.entity, self.sdk.keyexpr
        node = entity.NodeEntity(domain_id=self.domain, session_id=self.session.session_id,
                                 node_id=900, node_name="keeper")
        hash = self.publishers[topic][0].type_hash
        end = entity.EndpointEntity(
            node=node, entity_id=901, kind=entity.EntityKind.PUBLISHER, name=topic,
            dds_type_name=self.publishers[topic][0].dds_type_name, type_hash=hash,
            qos=f":1:,{count}:,:,:,,", gid=b"k" * 16)
        self.publishers[topic][0].close()
        of = zenoh.ext.declare_advanced_publisher(
            self.session.session, self.publishers[topic][0].keyexpr,
            cache=zenoh.ext.CacheConfig(max_samples=count), publisher_detection=True)
        token = keyexpr.endpoint_liveliness_keyexpr(end)
        self.kept += [of, self.session.liveliness.declare_token(token)]
        for seq in range(1, 2 * count + 1):
            message = self.build(type, {"data": f"kept {seq}"})
            data = bytes(self.session.store.serialize_cdr(message, type))
            of.put(data, attachment=self.attachment(seq, time.time_ns(), b"k" * 16).to_bytes())
        tell(keeps=topic)

    def matched(self, topics):
        while not all(self.publishers[t][0].pub.matching_status.matching for t in topics):
            time.sleep(0.01)
        tell(matched=len(topics))

    def any(self, type):
        """Any message."""
        message = self.ros.standard(type)
        if type in ("std_msgs/msg/Byte", "std_msgs/msg/ByteMultiArray"):
            # rosbags takes a byte for signed where a definition was given to it.
            message.data = message.data & 0x7F
        return message

    def publish(self, topic, count=1, value=None):
        of, type, sent = self.publishers[topic]
        for _ in range(count):
            message = self.build(type, value) if value is not None else self.any(type)
            fields = [name for name, _ in self.ros.store.fielddefs[type][1]]
            of.publish(**{name: getattr(message, name) for name in fields})
            sent.append(message)

    def build(self, type, value):
        """A message of what JSON says."""
        from rosbags.interfaces import Nodetype
        import numpy

        def one(desc, value):
            node, of = desc
            if node == Nodetype.BASE:
                return value
            if node == Nodetype.NAME:
                return self.build(of, value)
            if of[0][0] == Nodetype.BASE and of[0][1][0] != "string":
                return numpy.array(value, dtype=of[0][1][0])
            return [one(of[0], item) for item in value]

        fields = self.ros.store.fielddefs[type][1]
        of = {n: one(d, value[n]) if n != EMPTY else 0 for n, d in fields}
        return self.ros.store.types[type](**of)

    def unpack(self, value):
        if hasattr(value, "__msgtype__"):
            fields = self.ros.store.fielddefs[value.__msgtype__][1]
            return {name: self.unpack(getattr(value, name)) for name, _ in fields if name != EMPTY}
        if isinstance(value, list):
            return [self.unpack(item) for item in value]
        return value.tolist() if hasattr(value, "tolist") else value

    def value(self, topic):
        """The last message of a topic."""
        with self.lock:
            tell(value=self.unpack(self.got[topic][-1]), of=topic)

    def compare(self, sent, got):
        """Whether what came are copies of the first message, then each other one once."""
        type = self.publishers[sent][1]
        messages = self.publishers[sent][2]
        with self.lock:
            came = list(self.got.get(got, []))
        first = len(came) - (len(messages) - 1)
        fine = first >= 1 and all(self.ros.same(messages[0], m) for m in came[:first])
        fine = fine and all(
            self.ros.same(a, b) for a, b in zip(messages[1:], came[first:], strict=True))
        what = "" if fine else f"{messages}\n{came}"
        tell(compared=got, type=type, fine=fine, came=len(came), what=what)

    def spoil(self, topic, count):
        """What no publisher of ROS writes, on the key of one; how many messages that were."""
        of, type, _ = self.publishers[topic]
        fine = bytes(self.session.store.serialize_cdr(self.ros.standard(type), type))
        attached = self.attachment(1, time.time_ns(), b"x" * 16).to_bytes()
        put = self.session.session.put
        put(of.keyexpr, fine)
        put(of.keyexpr, fine, attachment=attached[:-1])
        put(of.keyexpr, fine, attachment=b"")
        put(of.keyexpr, b"", attachment=attached)
        for cut in range(count):
            part = fine[:len(fine) * cut // count]
            put(of.keyexpr, part[:max(0, len(part) - 4)], attachment=attached)
        for n in range(count):
            noise = bytes(self.ros.octets(n % 97))
            put(of.keyexpr, b"\0\1\0\0\xff\xff\xff\xff" + noise, attachment=attached)
        tell(spoiled=4 + 2 * count)

    def parts(self, type):
        """Definitions of a service's request and response, made known everywhere."""
        from rosbags.typesys import get_types_from_msg
        from zenoh_ros2_sdk import message_registry

        texts = SERVICES[type]
        for side, text in zip(("Request", "Response"), texts, strict=True):
            if self.part(type, side) not in self.ros.store.fielddefs:
                self.ros.store.register(get_types_from_msg(text, f"{type}_{side}"))
            for word in text.split():
                if "/" in word:
                    message_registry.load_message_type(word.split("[")[0].replace("/", "/msg/"))
        return dict(zip(("request_definition", "response_definition"), texts, strict=True))

    def part(self, type, side):
        # As rosbags calls them.
        return f"{type}_{side}".replace("/srv/", "/srv/msg/")

    def example(self, type, side):
        """Any request or response."""
        self.parts(type)
        value = self.unpack(self.ros.message(self.part(type, side)))
        tell(example=type, side=side, value=eighths(value))

    def serve(self, service, type, value, error=None):
        node = self

        class Server(self.sdk.ROS2ServiceServer):
            def _query_handler(self, query):
                attached = query.attachment.to_bytes()
                a = node.attachment.from_bytes(attached)
                tell(called=service, seq=a.sequence_id, wall_ns=a.timestamp_ns, gid=a.gid.hex(),
                     bytes=len(attached), now_ns=time.time_ns())
                super()._query_handler(query)

        def answer(request):
            tell(asked=service, value=self.unpack(request))
            if error is not None:
                raise RuntimeError(error)
            return self.build(self.part(type, "Response"), value)

        of = Server(service, type, answer, router_port=self.port, domain_id=self.domain,
                    **self.parts(type))
        self.servers[service] = of
        tell(served=service, hash=of.type_hash)

    def leave(self, service):
        self.servers.pop(service).close()
        tell(left=service)

    def client(self, service, type):
        of = self.sdk.ROS2ServiceClient(
            service, type, router_port=self.port, domain_id=self.domain, **self.parts(type))
        self.clients[service] = of, type
        while not of.querier.matching_status.matching:
            time.sleep(0.01)
        tell(client=service, hash=of.type_hash)

    def call(self, service, value):
        of, type = self.clients[service]
        name = self.part(type, "Request")
        message = self.build(name, value)
        fields = [n for n, _ in self.ros.store.fielddefs[name][1]]
        answer = of.call(**{n: getattr(message, n) for n in fields})
        tell(answered=service, value=None if answer is None else self.unpack(answer))

    def ask(self, service, payload, seq=None, cut=0):
        """A call without the package: all that comes back, and what is attached to it."""
        of, _ = self.clients[service]
        attached = self.attachment(seq or 0, time.time_ns(), b"client of sixtee").to_bytes()
        replies = []
        attached = {} if seq is None else {"attachment": attached[:len(attached) - cut]}
        for reply in self.session.session.get(
                of.keyexpr, payload=bytes(payload), target=zenoh.QueryTarget.ALL_COMPLETE,
                consolidation=zenoh.ConsolidationMode.NONE, timeout=10.0, **attached):
            if reply.err is not None:
                replies.append({"error": reply.err.payload.to_string()})
                continue
            a = self.attachment.from_bytes(reply.ok.attachment.to_bytes())
            replies.append({
                "payload": list(reply.ok.payload.to_bytes()), "seq": a.sequence_id,
                "gid": a.gid.decode(), "wall_ns": a.timestamp_ns, "now_ns": time.time_ns(),
                "key": str(reply.ok.key_expr) == of.keyexpr})
        tell(replied=service, replies=replies)

    def names(self):
        tell(names=self.ros.names)

    def types(self, names):
        """Hashes of types: those of the package and those of rosbags."""
        store = self.ros.store
        registry = sys.modules["zenoh_ros2_sdk.message_registry"].get_registry()
        utils = sys.modules["zenoh_ros2_sdk.utils"]
        out = {}
        for name in names:
            text = registry.get_msg_file_path(name).read_text()
            needs = utils.load_dependencies_recursive(name, text, registry)
            out[name] = [utils.get_type_hash(name, text, needs), store.hash_rihs01(name)]
        tell(types=out)


def node(port, folder, domain):
    node = Node(port, folder)
    node.domain = domain
    for line in sys.stdin:
        what = json.loads(line)
        getattr(node, what.pop("do"))(**what)
    # Zenoh's threads would be waited for.
    os._exit(0)


if sys.argv[1] == "router":
    router(int(sys.argv[2]))
else:
    node(int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
