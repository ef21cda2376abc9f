"""The worker of a site that reaches neither database nor broker: it fetches runs over HTTPS, and tells what happens."""
