# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from ..._transport import Connection, new_key, segment
from .. import types


class Keys(Connection):
    """Operations of the handoff service: keys."""

    def create_key(
        self,
        *,
        body: types.KeyRequest,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.NewApiKey:
        """Create an API key.

        The key is valid immediately and belongs to the caller's tenant. It may do at most
        what the creating key may do, and `scopes`, `agents`, `responder` and `sees` restrict
        it further. An admin key may also create admin keys, and keys for other tenants.

        Needs a key with the scope `manage`.

        Args:
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.NewApiKey = self._send(
            "POST",
            "/api/v1/keys",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    def list_keys(
        self,
        *,
        timeout: float | None = None,
    ) -> list[types.ApiKey]:
        """List the tenant's API keys.

        The keys that are neither revoked nor expired. Their values are not stored, so they
        can't be shown.

        Needs a key with the scope `read` or `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.ApiKey] = self._send(
            "GET",
            "/api/v1/keys",
            timeout=timeout,
        )
        return answer

    def rotate_key(
        self,
        id: str,
        *,
        body: types.RotateRequest | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.NewApiKey:
        """Rotate an API key.

        Creates a key with the same name, tier and rights to replace this one, which stays
        valid for the overlap and then expires. The two count as one key, towards the tenant's
        maximum and the limit per minute. A key with the scope `manage` may rotate itself and
        keys that may do no more than it; only an admin key may rotate an admin key.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.NewApiKey = self._send(
            "POST",
            f"/api/v1/keys/{segment(id)}/rotate",
            body={} if body is None else body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    def get_own_key(
        self,
        *,
        timeout: float | None = None,
    ) -> types.OwnKey:
        """Get the key of the request.

        What the key in `X-API-Key` may do, and the tenant that it belongs to; or the session,
        or the token. Any key may ask for itself.

        Needs a valid key; each operation checks its rights.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.OwnKey = self._send(
            "GET",
            "/api/v1/keys/self",
            timeout=timeout,
        )
        return answer

    def delete_key(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Revoke an API key.

        The key is refused on every instance from now on. A key can't revoke one that may do
        more. An admin key may revoke any tenant's key.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/keys/{segment(id)}",
            timeout=timeout,
        )
