"""The archive: closed logs kept whole, so that they can be replayed after their agents have deleted them."""
