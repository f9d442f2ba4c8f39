"""What holds for all tests."""

from hypothesis import settings

# A fsync takes as long as the machine is busy: time is no fault.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
