"""An OpenID Connect provider as a process of its own, which prints its port. The first argument: people, as JSON."""

from __future__ import annotations

import json
import sys

import werkzeug.serving
from oidc_provider_mock import User, app

if __name__ == "__main__":
    people = [User(sub=one.pop("sub"), claims=one) for one in json.loads(sys.argv[1])]
    server = werkzeug.serving.make_server("127.0.0.1", 0, app(user_claims=people), threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()
