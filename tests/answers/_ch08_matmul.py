"""Second answers to chapter 08's matrix products."""
