"""The library: templates to install, published figures."""
