"""Messages made by ``outlive types import``."""
