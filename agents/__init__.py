"""Acts on hosts over SSH: tunes, starts servers, drives load, watches, and puts everything back.

No Django, no Celery, no database: the record of a run comes in as events and goes out as events.
"""
