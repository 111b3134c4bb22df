# Written by `node scripts/python-client.ts` from the API description; change that, not this file.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._sse import ServerSentEvent
from ..._transport import Connection, entity_tag, segment
from .. import types


class A2a(Connection):
    """Operations of the handoff service: a2a."""

    def agent_card(
        self,
        *,
        if_none_match: int | str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Agent card (A2A).

        What the service offers to clients of A2A 1.0, and where. It contains no data of a
        tenant. With `If-None-Match` an unchanged card is answered with 304 and no body.

        Args:
            if_none_match: The `ETag` that the caller last saw; 304 if the card has not changed
              since.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "GET",
            "/.well-known/agent-card.json",
            headers={
                "If-None-Match": entity_tag(if_none_match),
            },
            timeout=timeout,
        )
        return answer

    def a2a(
        self,
        *,
        body: types.A2aRequest,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """A2A 1.0 (JSON-RPC).

        A request of JSON-RPC 2.0 as A2A 1.0 defines it. A message becomes a packet, and the
        packet is the task: the agent that completes it answers.

        The key is sent in `X-API-Key`, as `Authorization: Bearer`, or in `api_key`. `Host`
        and `Origin` must name this machine, `SERVICE_HOST` or one of `SERVICE_ALLOWED_HOSTS`.

        A refused operation is an error of JSON-RPC with the code of A2A; a request counts as
        one, however long it waits.

        Needs a valid key; each operation checks its rights.

        Args:
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "POST",
            "/a2a",
            body=body,
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_send_message(
        self,
        *,
        body: types.A2aSendMessageRequest,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a message (A2A).

        `SendMessage` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A have
        the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "POST",
            "/a2a/message:send",
            body=body,
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_send_streaming_message(
        self,
        *,
        body: types.A2aSendMessageRequest,
        a2a_version: str | None = None,
        agent_id: str | None = None,
    ) -> Iterator[ServerSentEvent]:
        """Send a message and follow its task (A2A).

        `SendStreamingMessage` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of
        A2A have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
        """
        return self._stream(
            "POST",
            "/a2a/message:stream",
            body=body,
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
        )

    def a2a_list_tasks(
        self,
        *,
        context_id: str | None = None,
        status: str | None = None,
        page_size: str | None = None,
        page_token: str | None = None,
        history_length: str | None = None,
        status_timestamp_after: str | None = None,
        include_artifacts: str | None = None,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """List tasks (A2A).

        `ListTasks` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A have
        the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            context_id: As A2A defines it.
            status: As A2A defines it.
            page_size: As A2A defines it.
            page_token: As A2A defines it.
            history_length: As A2A defines it.
            status_timestamp_after: As A2A defines it.
            include_artifacts: As A2A defines it.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "GET",
            "/a2a/tasks",
            query={
                "contextId": context_id,
                "status": status,
                "pageSize": page_size,
                "pageToken": page_token,
                "historyLength": history_length,
                "statusTimestampAfter": status_timestamp_after,
                "includeArtifacts": include_artifacts,
            },
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_cancel_task(
        self,
        id: str,
        *,
        body: dict[str, Any] | None = None,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Cancel a task (A2A).

        `CancelTask` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A have
        the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "POST",
            f"/a2a/tasks/{segment(id)}:cancel",
            body={} if body is None else body,
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_subscribe_to_task_by_get(
        self,
        id: str,
        *,
        a2a_version: str | None = None,
        agent_id: str | None = None,
    ) -> Iterator[ServerSentEvent]:
        """Follow a task (A2A).

        `SubscribeToTask` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A
        have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
        """
        return self._stream(
            "GET",
            f"/a2a/tasks/{segment(id)}:subscribe",
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
        )

    def a2a_subscribe_to_task(
        self,
        id: str,
        *,
        body: dict[str, Any] | None = None,
        a2a_version: str | None = None,
        agent_id: str | None = None,
    ) -> Iterator[ServerSentEvent]:
        """Follow a task (A2A).

        `SubscribeToTask` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A
        have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
        """
        return self._stream(
            "POST",
            f"/a2a/tasks/{segment(id)}:subscribe",
            body={} if body is None else body,
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
        )

    def a2a_get_task(
        self,
        id: str,
        *,
        history_length: str | None = None,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Get a task (A2A).

        `GetTask` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of A2A have the
        form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            history_length: As A2A defines it.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "GET",
            f"/a2a/tasks/{segment(id)}",
            query={
                "historyLength": history_length,
            },
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_create_task_push_notification_config(
        self,
        id: str,
        *,
        body: types.A2aCreateTaskPushNotificationConfigRequest,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Add a push notification configuration (A2A).

        `CreateTaskPushNotificationConfig` of A2A 1.0 over HTTP+JSON: the same as over
        JSON-RPC. Errors of A2A have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "POST",
            f"/a2a/tasks/{segment(id)}/pushNotificationConfigs",
            body=body,
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_list_task_push_notification_configs(
        self,
        id: str,
        *,
        page_size: str | None = None,
        page_token: str | None = None,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """List push notification configurations (A2A).

        `ListTaskPushNotificationConfigs` of A2A 1.0 over HTTP+JSON: the same as over
        JSON-RPC. Errors of A2A have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            page_size: As A2A defines it.
            page_token: As A2A defines it.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "GET",
            f"/a2a/tasks/{segment(id)}/pushNotificationConfigs",
            query={
                "pageSize": page_size,
                "pageToken": page_token,
            },
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_get_task_push_notification_config(
        self,
        id: str,
        config_id: str,
        *,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Get a push notification configuration (A2A).

        `GetTaskPushNotificationConfig` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC.
        Errors of A2A have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            config_id: The id of the configuration.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "GET",
            f"/a2a/tasks/{segment(id)}/pushNotificationConfigs/{segment(config_id)}",
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_delete_task_push_notification_config(
        self,
        id: str,
        config_id: str,
        *,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete a push notification configuration (A2A).

        `DeleteTaskPushNotificationConfig` of A2A 1.0 over HTTP+JSON: the same as over
        JSON-RPC. Errors of A2A have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            id: The id of the task.
            config_id: The id of the configuration.
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "DELETE",
            f"/a2a/tasks/{segment(id)}/pushNotificationConfigs/{segment(config_id)}",
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer

    def a2a_get_extended_agent_card(
        self,
        *,
        a2a_version: str | None = None,
        agent_id: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Get the agent card with the tenant's agents (A2A).

        `GetExtendedAgentCard` of A2A 1.0 over HTTP+JSON: the same as over JSON-RPC. Errors of
        A2A have the form of AIP-193.

        Needs a valid key; each operation checks its rights.

        Args:
            a2a_version: The version of A2A: `1.0`. Without it A2A means version 0.3, which the
              service does not support.
            agent_id: The agent that sends the message. 1 to 255 characters.
            timeout: Seconds to wait for the answer, instead of those of the client.
        """
        answer: Any = self._send(
            "GET",
            "/a2a/extendedAgentCard",
            headers={
                "A2A-Version": a2a_version or "1.0",
                "X-Agent-Id": agent_id or self._agent_id,
            },
            timeout=timeout,
        )
        return answer
