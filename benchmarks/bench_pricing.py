"""Print what the price list costs: loading it, and one price with and without the memory of the book."""

import time

from sessionlog.events.tokens import TokenUsage


def milliseconds(action):
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def main():
    start = time.perf_counter()
    from sessionlog.pricing.book import PriceBook

    print(f"import        {(time.perf_counter() - start) * 1e3:8.1f} ms (orjson and gzip included)")
    from sessionlog.pricing.price_list import load_price_list

    print(f"load          {milliseconds(load_price_list):8.1f} ms")
    book = PriceBook.load({"vllm/*": {"input": 0.1, "output": 0.2}})
    usage = TokenUsage(input=1200, output=345, cache_read=80_000, cache_write=2000, cache_write_1h=500, reasoning=45)
    count = 100_000
    now = 1_795_000_000_000_000_000
    for provider, model in [
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("openrouter", "anthropic/claude-sonnet-4.6"),
        ("google", "gemini-2.5-pro"),
        ("deepseek", "deepseek-v4-pro"),
        ("vllm", "qwen3.6-27b"),
        ("unknown", "nobody/knows-me"),
    ]:
        first = milliseconds(lambda p=provider, m=model: book.price(p, m, usage, now)) * 1e3
        each = (
            milliseconds(lambda p=provider, m=model: [book.price(p, m, usage, now) for _ in range(count)]) * 1e3 / count
        )
        print(f"price         {each:8.2f} us, first {first:8.0f} us  {provider}/{model}")
    print(f"fingerprint   {milliseconds(lambda: book.fingerprint):8.2f} ms")
    print(f"all models    {milliseconds(lambda: list(book.models())):8.1f} ms")


if __name__ == "__main__":
    main()
