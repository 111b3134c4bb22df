# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import Iterator

from ..._transport import Connection, new_key, segment
from .. import types


class Channels(Connection):
    """Operations of the handoff service: channels."""

    def create_channel(
        self,
        *,
        body: types.ChannelRequest,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> types.Channel:
        """Create a channel.

        A channel sends questions to a mail address or to Slack: each message has the
        question, the start of the summary, the time left and an answer link. Without
        `SERVICE_PUBLIC_URL` the links start with the origin of this request.

        Needs a key with the scope `manage`.

        Args:
            idempotency_key: For 24 hours, a repeated request with the same key returns the first
              answer. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Channel = self._send(
            "POST",
            "/api/v1/channels",
            body=body,
            headers={
                "Idempotency-Key": idempotency_key or new_key(),
            },
            timeout=timeout,
        )
        return answer

    def list_channels(
        self,
        *,
        timeout: float | None = None,
    ) -> list[types.Channel]:
        """List channels.

        The channels that are not removed. If the service disabled one, `disabled_reason` says
        why.

        Needs a key with the scope `read` or `manage`.

        Args:
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.Channel] = self._send(
            "GET",
            "/api/v1/channels",
            timeout=timeout,
        )
        return answer

    def get_channel(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.Channel:
        """Get a channel.

        Get a channel.

        Needs a key with the scope `read` or `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Channel = self._send(
            "GET",
            f"/api/v1/channels/{segment(id)}",
            timeout=timeout,
        )
        return answer

    def patch_channel(
        self,
        id: str,
        *,
        body: types.ChannelPatch,
        timeout: float | None = None,
    ) -> types.Channel:
        """Change a channel.

        Changes the given fields; null removes a name or responder. Answer links that were
        sent stay valid.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.Channel = self._send(
            "PATCH",
            f"/api/v1/channels/{segment(id)}",
            body=body,
            timeout=timeout,
        )
        return answer

    def delete_channel(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> None:
        """Remove a channel.

        It receives no further messages, its pending messages are cancelled, and the answer
        links sent to it end.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        self._send(
            "DELETE",
            f"/api/v1/channels/{segment(id)}",
            timeout=timeout,
        )

    def test_channel(
        self,
        id: str,
        *,
        timeout: float | None = None,
    ) -> types.ChannelDelivery:
        """Send a test message.

        Sends a message without a question, recorded and retried like any other.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ChannelDelivery = self._send(
            "POST",
            f"/api/v1/channels/{segment(id)}/test",
            timeout=timeout,
        )
        return answer

    def list_channel_deliveries(
        self,
        id: str,
        *,
        status: types.DeliveryStatus | None = None,
        limit: int | None = None,
        offset: int | None = None,
        timeout: float | None = None,
    ) -> list[types.ChannelDelivery]:
        """List a channel's deliveries.

        Newest first. A delivery whose question ended before it was sent is `cancelled`. For
        mail, `last_status_code` is the reply code of SMTP.

        Needs a key with the scope `read` or `manage`.

        Args:
            id: The id.
            status: Only deliveries of this status.
            limit: The maximum number of items to return.
            offset: How many items to skip.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: list[types.ChannelDelivery] = self._send(
            "GET",
            f"/api/v1/channels/{segment(id)}/deliveries",
            query={
                "status": status,
                "limit": limit,
                "offset": offset,
            },
            timeout=timeout,
        )
        return answer

    def iter_list_channel_deliveries(
        self,
        id: str,
        *,
        status: types.DeliveryStatus | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[types.ChannelDelivery]:
        """All items of all pages of `list_channel_deliveries`; `limit` is the size of a page."""
        return self._pages(
            self.list_channel_deliveries,
            id=id,
            status=status,
            limit=limit,
            timeout=timeout,
        )

    def replay_channel_delivery(
        self,
        id: str,
        delivery_id: str,
        *,
        timeout: float | None = None,
    ) -> types.ChannelDelivery:
        """Replay a channel's dead letter.

        Writes the message again from the current packet and sends it, with a full set of
        attempts.

        Needs a key with the scope `manage`.

        Args:
            id: The id.
            delivery_id: The id of the delivery.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: types.ChannelDelivery = self._send(
            "POST",
            f"/api/v1/channels/{segment(id)}/deliveries/{segment(delivery_id)}/replay",
            timeout=timeout,
        )
        return answer
