"""Helpers that gradient rules share, written on ops."""
