"""What was said: messages, the rules they keep, and how a history that has grown too long is cut."""
