from tilewright import bf16,
