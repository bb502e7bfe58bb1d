"""Kinds of answers. Each kind defines how answers are asked for, read, compared and shown."""
