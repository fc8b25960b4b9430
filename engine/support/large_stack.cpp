#include "engine/support/large_stack.h"

#include <pthread.h>

#include <exception>

namespace faultline {
namespace {

struct StackWork {
  const std::function<void()>& work;
  std::exception_ptr thrown;
};

void* runWork(void* argument) {
  auto* self = static_cast<StackWork*>(argument);
  try {
    self->work();
  } catch (...) {
    self->thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void runOnLargeStack(size_t bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  StackWork self{work, nullptr};
  const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                       pthread_create(&thread, &attributes, runWork, &self) == 0;
  pthread_attr_destroy(&attributes);
  if (started) {
    pthread_join(thread, nullptr);
  } else {
    runWork(&self);
  }
  if (self.thrown) std::rethrow_exception(self.thrown);
}

}  // namespace faultline
