"""Serve a decoder to several programs at once: texts that join and leave one batch, behind OpenAI's protocol."""
