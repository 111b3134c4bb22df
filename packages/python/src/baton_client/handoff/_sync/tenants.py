# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from ..._transport import Connection, segment
from .. import types


class Tenants(Connection):
    """Operations of the handoff service: tenants."""

    def list_tenant_keys(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> list[types.ApiKey]:
        """List a tenant's API keys.

        The same list that the tenant gets with `GET /keys`.

        Needs an admin key.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.ApiKey] = self._send(
            "GET",
            f"/api/v1/tenants/{segment(id)}/keys",
            timeout=timeout,
        )
        return answer

    def create_tenant(
        self,
        *,
        body: types.TenantRequest,
        timeout: float | None = None,
    ) -> types.Tenant:
        """Create a tenant.

        A new tenant has no keys; create its first one with `POST /keys` and its `tenant_id`.

        Needs an admin key.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Tenant = self._send(
            "POST",
            "/api/v1/tenants",
            body=body,
            timeout=timeout,
        )
        return answer

    def list_tenants(
        self,
        *,
        timeout: float | None = None,
    ) -> list[types.Tenant]:
        """List tenants.

        Every tenant that is not deleted.

        Needs an admin key.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Tenant] = self._send(
            "GET",
            "/api/v1/tenants",
            timeout=timeout,
        )
        return answer

    def get_tenant(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.Tenant:
        """Get a tenant.

        A request for a deleted tenant gets 404.

        Needs an admin key.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Tenant = self._send(
            "GET",
            f"/api/v1/tenants/{segment(id)}",
            timeout=timeout,
        )
        return answer

    def patch_tenant(
        self,
        id: str,
        *,
        body: types.TenantPatch,
        timeout: float | None = None,
    ) -> types.Tenant:
        """Update a tenant.

        Changes the given fields and keeps the others. A new tier applies from the next
        request on.

        Needs an admin key.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Tenant = self._send(
            "PATCH",
            f"/api/v1/tenants/{segment(id)}",
            body=body,
            timeout=timeout,
        )
        return answer

    def delete_tenant(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Delete a tenant.

        A soft delete: the data stays, the keys are refused immediately.

        Needs an admin key.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/tenants/{segment(id)}",
            timeout=timeout,
        )
