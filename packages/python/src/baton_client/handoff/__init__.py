"""The handoff packet service; the types of its bodies and answers are in `baton_client.handoff.types`."""
