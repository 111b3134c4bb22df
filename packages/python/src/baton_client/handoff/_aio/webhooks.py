# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import AsyncIterator

from ..._transport import AsyncConnection, new_key, segment
from .. import types


class Webhooks(AsyncConnection):
    """Operations of the handoff service: webhooks."""

    async def create_webhook(
        self,
        *,
        body: types.WebhookRequest,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.Webhook:
        """Register a webhook.

        Each event is posted to the URL when it happens, as `{type, packet_id, data,
        timestamp}` with the whole packet in `data`. The raw body is signed:
        `X-SERVICE-Signature: sha256=<hex HMAC-SHA256>`, and the headers of Standard Webhooks.

        Needs a key with the scope `manage`.

        Args:
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Webhook = await self._send(
            "POST",
            "/api/v1/hooks",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    async def list_webhooks(
        self,
        *,
        timeout: float | None = None,
    ) -> list[types.Webhook]:
        """List webhooks.

        The webhooks that are not removed. If the service disabled one, `disabled_reason` says
        why.

        Needs a key with the scope `read` or `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Webhook] = await self._send(
            "GET",
            "/api/v1/hooks",
            timeout=timeout,
        )
        return answer

    async def patch_webhook(
        self,
        id: str,
        *,
        body: types.WebhookPatch,
        timeout: float | None = None,
    ) -> types.Webhook:
        """Change a webhook.

        Changes the given fields. After a change of secret, deliveries are signed with both
        secrets for a while, so that the receiver can switch.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Webhook = await self._send(
            "PATCH",
            f"/api/v1/hooks/{segment(id)}",
            body=body,
            timeout=timeout,
        )
        return answer

    async def delete_webhook(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Remove a webhook.

        The webhook disappears from lists and receives no more events; its pending deliveries
        are cancelled.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        await self._send(
            "DELETE",
            f"/api/v1/hooks/{segment(id)}",
            timeout=timeout,
        )

    async def ping_webhook(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.Delivery:
        """Send a test delivery.

        Sends an event of type `ping` with `data: {webhook_id}`, recorded, signed and retried
        like any other.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Delivery = await self._send(
            "POST",
            f"/api/v1/hooks/{segment(id)}/ping",
            timeout=timeout,
        )
        return answer

    async def list_deliveries(
        self,
        id: str,
        *,
        status: types.DeliveryStatus | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> list[types.Delivery]:
        """List a webhook's deliveries.

        Newest first. The deliveries of a removed webhook remain readable.

        Needs a key with the scope `read` or `manage`.

        Args:
            id: The id.
            status: Only deliveries of this status.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Delivery] = await self._send(
            "GET",
            f"/api/v1/hooks/{segment(id)}/deliveries",
            query={
                "status": status,
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_deliveries(
        self,
        id: str,
        *,
        status: types.DeliveryStatus | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.Delivery]:
        """All items of all pages of `list_deliveries`; `limit` is the size of a page."""
        return self._pages(
            self.list_deliveries,
            id=id,
            status=status,
            limit=limit,
            timeout=timeout,
        )

    async def get_delivery(
        self,
        id: str,
        delivery_id: str,
        *,
        timeout: float | None = None,
    ) -> types.DeliveryDetail:
        """Get a delivery and what it sends.

        The delivery with the exact body that is posted. Timestamp and signatures differ with
        each attempt and are not stored.

        Needs a key with the scope `read` or `manage`.

        Args:
            id: The id.
            delivery_id: The id of the delivery.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.DeliveryDetail = await self._send(
            "GET",
            f"/api/v1/hooks/{segment(id)}/deliveries/{segment(delivery_id)}",
            timeout=timeout,
        )
        return answer

    async def list_dead_letters(
        self,
        *,
        webhook_id: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> list[types.Delivery]:
        """List dead letters.

        Deliveries to any of the tenant's webhooks that have used up their attempts.

        Needs a key with the scope `read` or `manage`.

        Args:
            webhook_id: Only deliveries to this webhook.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Delivery] = await self._send(
            "GET",
            "/api/v1/hooks/dlq",
            query={
                "webhook_id": webhook_id,
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_dead_letters(
        self,
        *,
        webhook_id: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncIterator[types.Delivery]:
        """All items of all pages of `list_dead_letters`; `limit` is the size of a page."""
        return self._pages(
            self.list_dead_letters,
            webhook_id=webhook_id,
            limit=limit,
            timeout=timeout,
        )

    async def replay_dead_letter(
        self,
        delivery_id: str,
        *,
        timeout: float | None = None,
    ) -> types.ReplayedDelivery:
        """Replay a dead letter.

        Sends the same bytes again immediately, under the same delivery id and with a full set
        of attempts.

        Needs a key with the scope `manage`.

        Args:
            delivery_id: The id of the delivery.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ReplayedDelivery = await self._send(
            "POST",
            f"/api/v1/hooks/dlq/{segment(delivery_id)}/replay",
            timeout=timeout,
        )
        return answer

    async def retry_all(
        self,
        *,
        body: types.RetryRequest | None = None,
        timeout: float | None = None,
    ) -> types.Retried:
        """Retry failed deliveries.

        Retries failed deliveries and dead letters whose `next_retry_at` has passed, oldest
        first, at most 1,000 per call; each restarts with a full set of attempts.

        Needs a key with the scope `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Retried = await self._send(
            "POST",
            "/api/v1/hooks/dlq/retry-all",
            body={} if body is None else body,
            timeout=timeout,
        )
        return answer
