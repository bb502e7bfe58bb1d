"""Kinds of answers: how each is asked for, read, compared and shown."""
