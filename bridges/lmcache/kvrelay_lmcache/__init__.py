"""Forwards every event of LMCache's EventBus over ZMQ, for use beside kvrelay."""
