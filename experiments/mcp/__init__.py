"""The door for assistants: a few tools of the Model Context Protocol, whose answers are cut from those of the API."""
