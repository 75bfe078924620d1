"""Who takes part: the four hosted servers, together in one process.

    locust -f multi.py                  all of them, by locust.conf
    locust -f multi.py LearnUser -u 7   one class

How many users each class has, it reads from the environment (GITHUB_USERS and so on; 0 leaves it
out). For another server, import its class here and list its files in azure-loadtest.yaml.
"""

from __future__ import annotations

from ado import ADOUser
from context7 import Context7User
from github import GitHubUser
from learn import LearnUser

__all__ = ["ADOUser", "Context7User", "GitHubUser", "LearnUser"]
