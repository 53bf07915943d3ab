"""Starts a stock Dynamo worker without the KV-event publisher it would set up.

Two event sources for one worker and rank blank that rank at every router, and the released workers of vLLM and SGLang have no
switch for theirs. `python -m kvrelay_dynamo vllm ...` is `python -m dynamo.vllm ...` with that one part left out.
"""
