"""What holds for all tests."""

from hypothesis import settings

from tests.browser import browser as browser
from tests.browser import page as page

# A fsync takes as long as the machine is busy: time is no fault.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
