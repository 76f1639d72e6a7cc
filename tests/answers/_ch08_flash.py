"""Second answers to chapter 08's FlashAttention."""
