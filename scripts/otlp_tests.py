"""A collector that takes what `outlive metrics --otlp` sends, and reads it by the definitions of
OpenTelemetry (opentelemetry-proto); compared with what Prometheus' parser reads in the same domain."""

import json
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from opentelemetry.proto.metrics.v1 import metrics_pb2
from prometheus_client.parser import text_string_to_metric_families

OUTLIVE = sys.argv[1]
PATIENCE_S = 60


class Collector(BaseHTTPRequestHandler):
    """Keeps every request; answers as ordered."""

    requests = []
    news = threading.Condition()
    answer = (200, "{}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.news:
            status, text = Collector.answer
            self.requests.append((self.path, self.headers["Content-Type"], body))
            self.news.notify_all()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def points(body):
    """By name and labels: value, kind, start. A field that the protocol does not have is an error."""
    request = json_format.Parse(body, service.ExportMetricsServiceRequest())
    # The binary encoding takes it too.
    assert service.ExportMetricsServiceRequest.FromString(request.SerializeToString()) == request
    (resource,) = request.resource_metrics
    about = {a.key: a.value.string_value for a in resource.resource.attributes}
    assert about["service.name"] == "outlive" and about["outlive.domain"] == "default", about
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "outlive" and scope.scope.version
    found = {}
    for metric in scope.metrics:
        kind = metric.WhichOneof("data")
        data = getattr(metric, kind)
        assert metric.description and metric.unit in ("1", "By"), metric.name
        if kind == "sum":
            cumulative = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE
            assert data.is_monotonic and data.aggregation_temporality == cumulative
        for point in data.data_points:
            labels = frozenset((a.key, a.value.string_value) for a in point.attributes)
            assert point.WhichOneof("value") == "as_int" and point.time_unix_nano > 1.6e18
            assert point.start_time_unix_nano <= point.time_unix_nano
            assert (metric.name, labels) not in found
            found[metric.name, labels] = (point.as_int, kind, point.start_time_unix_nano)
    return found


def await_request(check=lambda body: True):
    """The first request from now on for which `check` holds."""
    with Collector.news:
        at = len(Collector.requests)
        while True:
            for request in Collector.requests[at:]:
                if check(request[2]):
                    return request
            at = len(Collector.requests)
            assert Collector.news.wait(PATIENCE_S), "no request that fits"


def start(*args, **more):
    return subprocess.Popen([OUTLIVE, *args], stdin=subprocess.DEVNULL, text=True, **more)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    publisher = start("topic", "pub", "/n", "--type", "f64", "--json", "1", "--linger", "inf", **quiet)
    sender = None
    try:
        while True:
            topics = json.loads(subprocess.check_output([OUTLIVE, "topic", "list", "--json"]))
            if topics and topics[0]["messages"] == 1:
                break
        # Once, and the same numbers as in the text for Prometheus.
        subprocess.run([OUTLIVE, "metrics", "--otlp", url], check=True)
        path, kind, body = Collector.requests[-1]
        assert (path, kind) == ("/v1/metrics", "application/json"), (path, kind)
        found = points(body)
        text = subprocess.check_output([OUTLIVE, "metrics"], text=True)
        compared = 0
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                name = sample.name.removesuffix("_total")
                value, kind, _ = found.pop((name, frozenset(sample.labels.items())))
                wanted = "sum" if family.type == "counter" else "gauge"
                assert (value, kind) == (sample.value, wanted), sample
                compared += 1
        assert compared > 10 and not found, found

        # Again and again: a death is counted from the first look on.
        sender = start("metrics", "--otlp", url, "--every", "0.1", stderr=subprocess.PIPE)
        deaths = ("outlive_node_deaths", frozenset())
        first = points(await_request()[2])[deaths]
        assert first[0] == 0 and first[2] > 0, first
        publisher.kill()
        publisher.wait()
        body = await_request(lambda body: points(body)[deaths][0] == 1)[2]
        assert points(body)[deaths][2] == first[2]

        # What is refused is told once, and the next is sent.
        def told(answer, what):
            Collector.answer = answer
            line = sender.stderr.readline()
            assert what in line, line

        told((503, ""), "refuses the metrics: 503")
        told((200, "{}"), "takes metrics again")
        partial = {"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "full"}}
        told((200, json.dumps(partial)), "full")
        await_request()
        sender.send_signal(signal.SIGTERM)
        assert sender.wait(PATIENCE_S) == 0
        server.shutdown()
        server.server_close()
        gone = subprocess.run([OUTLIVE, "metrics", "--otlp", url], capture_output=True, text=True)
        assert gone.returncode == 1 and "send to" in gone.stderr, gone
    finally:
        for process in filter(None, (publisher, sender)):
            process.kill()
            process.wait()
    print(f"otlp: {compared} numbers as Prometheus has them, {len(Collector.requests)} requests read")


main()
