"""The fallback chain service; the types of its bodies and answers are in `baton_client.fallback.types`."""
