"""Kinds of task. One object for each kind holds everything in which kinds differ."""
