from tilewright bring bf16
