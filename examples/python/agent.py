"""An agent of the handoff service, on Python's standard library (3.9 or newer).

    SERVICE_API_KEY=... python3 agent.py work       claims packets, asks a person about each, and completes it
    SERVICE_API_KEY=... python3 agent.py listen     prints events; resumes after a broken connection
    WEBHOOK_SECRET=... python3 agent.py receive     receives webhooks on PORT and verifies their signatures
"""
import hashlib, hmac, json, os, sys, threading, time
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL = os.environ.get("SERVICE_URL", "http://localhost:8080")
KEY = os.environ.get("SERVICE_API_KEY", "").strip()
AGENT = os.environ.get("AGENT", "resolver")
LEASE_SECONDS = int(os.environ.get("LEASE_SECONDS", "60"))


def call(method, path, body=None, token=None, timeout=30):
    """The JSON of an answer, None if it is empty. Raises HTTPError when the service refuses."""
    headers = {"X-API-Key": KEY, "X-Agent-Id": AGENT.encode(), "Content-Type": "application/json"}
    if token:
        headers["X-Lease-Token"] = token
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{URL}/api/v1{path}", data, headers, method=method), timeout=timeout) as answer:
        return json.loads(answer.read() or "null")


def heartbeat(packet, stop):
    """Renews the lease of a packet until `stop` is set. Sets it when another agent may have the packet."""
    while not stop.wait(LEASE_SECONDS / 3):
        try:
            call("POST", f"/packets/{packet['id']}/lease", {}, packet["lease"]["token"])
        except HTTPError:
            stop.set()
        except OSError:
            pass  # No answer: the next one may come in time.


def ask(packet, question, options):
    """The packet with the answer of a person in `hitl`; without one if nobody answered in time."""
    hitl = {"required": True, "reason": "The agent may not decide this", "question": question, "options": options}
    path, token = f"/packets/{packet['id']}", packet["lease"]["token"]
    packet = call("PATCH", path, {"status": "awaiting_human", "hitl": hitl}, token)
    while packet["status"] == "awaiting_human":
        packet = call("GET", f"{path}?wait_seconds=60&until=claimed,failed,expired", timeout=90)
    return packet


def work():
    """Claims packets for AGENT. If it dies, another agent gets its packet after the lease expires."""
    while True:
        wanted = {"agent_id": AGENT, "wait_seconds": 60, "lease_seconds": LEASE_SECONDS}
        packet = call("POST", "/packets/claim-next", wanted, timeout=90)
        if packet is None:
            continue  # None arrived in time.
        stop = threading.Event()
        threading.Thread(target=heartbeat, args=(packet, stop), daemon=True).start()
        try:
            answer = ask(packet, f"Do this? {packet['context']['summary']}", ["Yes", "No"])["hitl"]["response"]
            done = {"status": "completed", "context": {"custom": {"answer": answer}}}
            call("PATCH", f"/packets/{packet['id']}", done, packet["lease"]["token"])
            print(f"completed {packet['id']}: {answer}", flush=True)
        except HTTPError as refusal:  # For example 409 LEASE_LOST: another agent has the packet, and nothing was written.
            print(f"lost {packet['id']}: {json.load(refusal)['detail']}", flush=True)
        finally:
            stop.set()


def events():
    """Yields the events of the tenant as (id, type, data). A broken stream is opened again after the last event."""
    last, retry = None, 3
    while True:
        headers = {"X-API-Key": KEY, "Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
        try:
            with urlopen(Request(f"{URL}/events", headers=headers), timeout=75) as stream:  # A ping comes every 30 seconds.
                event = {}
                for line in stream:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    if name == "retry":
                        retry = int(value) / 1000
                    elif name:
                        event[name] = value
                    elif event:
                        last = event.get("id", last)
                        if event.get("event") not in ("connected", "ping"):
                            yield last, event.get("event"), json.loads(event["data"])
                        event = {}
        except (OSError, HTTPException) as fault:
            if isinstance(fault, HTTPError) and fault.code not in (429, 502, 503, 504):
                raise
        time.sleep(retry)


def is_genuine(secret, body, signature):
    """Whether the header X-SERVICE-Signature signs the raw bytes of the body."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = is_genuine(os.environ["WEBHOOK_SECRET"], body, self.headers["X-SERVICE-Signature"])
        self.send_response(204 if genuine else 401)
        self.end_headers()
        if genuine:  # A delivery may arrive twice, with the same id.
            print(self.headers["webhook-id"], json.loads(body)["type"], flush=True)


def listen():
    for number, kind, data in events():
        print(number, kind, (data.get("data") or {}).get("status"), flush=True)


if __name__ == "__main__":
    receive = lambda: ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
    {"work": work, "listen": listen, "receive": receive}.get(sys.argv[-1], lambda: sys.exit(__doc__))()
