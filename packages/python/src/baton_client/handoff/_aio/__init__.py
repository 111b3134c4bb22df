# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
from .a2a import A2a
from .agents import Agents
from .answer_links import AnswerLinks
from .approvals import Approvals
from .audit import Audit
from .channels import Channels
from .erasures import Erasures
from .keys import Keys
from .mcp import Mcp
from .packets import Packets
from .people import People
from .schedules import Schedules
from .sessions import Sessions
from .stats import Stats
from .system import System
from .tenants import Tenants
from .webhooks import Webhooks


class Operations(
    A2a,
    Agents,
    AnswerLinks,
    Approvals,
    Audit,
    Channels,
    Erasures,
    Keys,
    Mcp,
    Packets,
    People,
    Schedules,
    Sessions,
    Stats,
    System,
    Tenants,
    Webhooks,
):
    """All operations of the handoff service."""
