"""Changes of the requests that schemathesis sends: none waits for an event, and few are refused for a reason that the description can't say."""

import itertools
from urllib.parse import unquote

import schemathesis

number = itertools.count()


@schemathesis.hook
def filter_case(context, case):
    # In the paths of A2A a colon begins a verb, so that an id with one leads to no operation.
    return not case.operation.path.startswith("/a2a") or all(":" not in unquote(str(value)) for value in (case.path_parameters or {}).values())


@schemathesis.hook
def before_call(context, case, kwargs):
    for values in (case.query, case.body):
        if isinstance(values, dict) and isinstance(values.get("wait_seconds"), (int, float)) and 0 < values["wait_seconds"] <= 60:
            values["wait_seconds"] = 0
    if case.operation.path == "/a2a/message:send" and isinstance(case.body, dict):
        configuration = case.body.setdefault("configuration", {})
        if isinstance(configuration, dict):
            configuration["returnImmediately"] = True
    if case.operation.path.startswith("/a2a"):
        case.headers.setdefault("A2A-Version", "1.0")
    if case.operation.path == "/mcp":
        case.headers.setdefault("Accept", "application/json, text/event-stream")
    # A dry run answers an invalid packet with 200 and its faults.
    if case.operation.path == "/api/v1/packets" and isinstance(case.query, dict):
        case.query.pop("dry_run", None)
    # Schemathesis reads no file of several YAML documents.
    if isinstance(case.query, dict) and case.query.get("format") == "envoy-ai-gateway":
        case.query.pop("raw", None)
    # Thirty wrong keys from an address would be answered with 429.
    case.headers["X-Forwarded-For"] = f"10.0.{next(number) // 256 % 256}.{next(number) % 256}"
