"""Uses a client that openapi-python-client generated from the API description: `handoff_client.py FOLDER URL KEY`."""
import importlib
import json
import pkgutil
import sys

folder, url, key = sys.argv[1:]
sys.path.insert(0, folder)

import baton_handoff_packet_service_client as generated  # noqa: E402
from baton_handoff_packet_service_client import models  # noqa: E402
from baton_handoff_packet_service_client.api import packets  # noqa: E402

modules = list(pkgutil.walk_packages(generated.__path__, generated.__name__ + "."))
for module in modules:
    importlib.import_module(module.name)
operations = [module.name for module in modules if module.name.count(".") == 3]


def operation(name):
    return importlib.import_module(f"{packets.__name__}.{name}")


client = generated.AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="X-API-Key")
request = models.CreateRequest.from_dict({
    "metadata": {"source_agent": {"id": "a", "name": "A", "framework": "x"}, "target_agent": {"id": "b", "name": "B"}},
    "context": {"summary": "Refund order 4711", "custom": {"order": 4711}},
    "actions": {"pending": [{"id": "a1", "description": "Refund", "assignee": "b"}]},
})
created = operation("create_packet").sync(client=client, body=request)
claimed = operation("claim_next").sync(client=client, body=models.ClaimNextBody(agent_id="b", lease_seconds=60))
refused = operation("claim_packet").sync_detailed(created.id, client=client, body=models.ClaimRequest(agent_id="c"))
patch = models.PatchRequest.from_dict({"status": "completed", "actions": {"completed": [{"id": "a1", "result": "Done"}]}})
completed = operation("patch_packet").sync(created.id, client=client, body=patch, x_lease_token=claimed.lease.token)
listed = operation("list_packets").sync(client=client, status="completed,failed")
unknown = operation("get_packet").sync_detailed("unknown", client=client)
print(json.dumps({
    "operations": len(operations),
    "created": created.to_dict(),
    "claimed": [claimed.id == created.id, claimed.status.value],
    "refused": [refused.status_code, refused.parsed.code.value, refused.parsed.claimed_by.agent_id],
    "completed": [completed.status.value, completed.actions.completed[0].result],
    "listed": [listed.total, listed.packets[0].id == created.id],
    "unknown": [unknown.status_code, unknown.parsed.code.value],
}))
