// Defined in builds with a sanitizer that reports fatal signals itself, and better than we could.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define FAULTLINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FAULTLINE_SANITIZED 1
#endif
#endif
