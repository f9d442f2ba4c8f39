"""Kinds of task: all that differs between them, behind one object for each."""
