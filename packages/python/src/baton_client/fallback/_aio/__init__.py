# Written by `node scripts/python-client.ts` from the API description; change that, not this file.
from .chains import Chains
from .exports import Exports
from .system import System
from .tests import Tests


class Operations(
    Chains,
    Exports,
    System,
    Tests,
):
    """All operations of the fallback service."""
