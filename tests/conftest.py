"""What holds for all tests."""

import os

from hypothesis import HealthCheck, settings

from tests.browser import browser as browser
from tests.browser import page as page

# However slow or busy the machine is, a test says the same: time is no fault, draws have a seed, and no progress bar
# comes up beside what a command says after some seconds.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("steady")
os.environ["TQDM_DISABLE"] = "1"
# No proxy stands between a test and a server of its own.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
