#include "oracles/workers/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/support/check.h"
#include "oracles/workers/system.h"

namespace faultline {

namespace {

constexpr char kMagic[16] = "faultline fdr 1";
constexpr size_t kInitialData = size_t{64} << 10;
// Two texts of the largest size, and one more that the first of them has not made room for yet.
constexpr size_t kMaxData = 3 * FlightRecorder::kMaxText;

void putWord(char (&to)[64], std::string_view word) {
  const size_t size = std::min(word.size(), sizeof(to) - 1);
  std::memcpy(to, word.data(), size);
  to[size] = 0;
}

template <size_t N>
std::string takeWord(const char (&from)[N]) {
  return {from, strnlen(from, N)};
}

}  // namespace

struct FlightRecorder::Position {
  uint64_t job;
  uint64_t op_ordinal;
  uint64_t data_offset, data_size;
  FlightStage stage;
  int32_t run;
  uint32_t text_cut;
  char op[64], lane[64], phase[64];
};

// A position is written into the slot that is not published, then `published` names it. Data is written where
// the published position does not look. So whatever instruction a process dies at, the published one is
// whole.
struct FlightRecorder::Header {
  char magic[16];
  std::atomic<uint32_t> published;
  Position positions[2];
  CrashNote crash;
};

namespace {
constexpr size_t kDataStart = (sizeof(FlightRecorder::Header) + 4095) / 4096 * 4096;
}

static_assert(std::is_trivially_copyable_v<FlightRecorder::Position>);
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<int32_t>::is_always_lock_free);

Result<void> FlightRecorder::create(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) {
    return tl::make_unexpected(systemError(path, "make the flight recorder", errno));
  }
  int failed = ::posix_fallocate(fd.get(), 0, kDataStart + kInitialData);
  if (failed == 0 && ::pwrite(fd.get(), kMagic, sizeof(kMagic), 0) != sizeof(kMagic)) {
    failed = errno;
  }
  if (failed != 0) {
    ::unlink(path.c_str());
    return tl::make_unexpected(systemError(path, "make the flight recorder", failed));
  }
  return {};
}

Result<FlightRecorder> FlightRecorder::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return tl::make_unexpected(systemError(path, "open the flight recorder", errno));
  }
  // Mapped as large as it can ever get; pages behind the file's end are not touched before `reserve` grew it.
  void* memory = ::mmap(nullptr, kDataStart + kMaxData, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) {
    return tl::make_unexpected(systemError(path, "map the flight recorder", errno));
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size < kDataStart || std::memcmp(memory, kMagic, sizeof(kMagic)) != 0) {
    ::munmap(memory, kDataStart + kMaxData);
    return tl::make_unexpected(Error{ErrorKind::Invalid, "not a flight recorder", path, std::nullopt});
  }
  return FlightRecorder(std::move(fd), static_cast<Header*>(memory), size);
}

FlightRecorder::FlightRecorder(FlightRecorder&& other) noexcept { *this = std::move(other); }

FlightRecorder& FlightRecorder::operator=(FlightRecorder&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(header_, other.header_);
  std::swap(size_, other.size_);
  return *this;
}

FlightRecorder::~FlightRecorder() {
  if (header_ != nullptr) {
    ::munmap(header_, kDataStart + kMaxData);
  }
}

char* FlightRecorder::data() { return reinterpret_cast<char*>(header_) + kDataStart; }

CrashNote& FlightRecorder::crash() { return header_->crash; }

FlightRecorder::Position& FlightRecorder::prepare() {
  const uint32_t published = header_->published.load(std::memory_order_relaxed) & 1U;
  header_->positions[1 - published] = header_->positions[published];
  return header_->positions[1 - published];
}

void FlightRecorder::publish() {
  const uint32_t published = header_->published.load(std::memory_order_relaxed) & 1U;
  header_->published.store(1 - published, std::memory_order_release);
}

bool FlightRecorder::reserve(size_t end) {
  if (kDataStart + end <= size_) {
    return true;
  }
  const size_t wanted = kDataStart + std::min(kMaxData, std::max(end, 2 * (size_ - kDataStart)));
  // Grown by allocating, not by a hole: writing into a hole of a full disk would be a SIGBUS.
  if (end > kMaxData || ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(wanted)) != 0) {
    return false;
  }
  size_ = wanted;
  return true;
}

void FlightRecorder::putData(Position& position, std::string_view bytes) {
  const size_t offset = bytes.size() <= position.data_offset ? 0 : position.data_offset + position.data_size;
  position.text_cut = bytes.size() > kMaxText || !reserve(offset + bytes.size());
  position.data_offset = position.text_cut ? 0 : offset;
  position.data_size = position.text_cut ? 0 : bytes.size();
  if (!position.text_cut) {
    std::memcpy(data() + offset, bytes.data(), bytes.size());
  }
}

void FlightRecorder::idle() {
  Position& position = prepare();
  position.stage = FlightStage::Idle;
  publish();
}

void FlightRecorder::beginGenerating(uint64_t job) {
  Position& position = prepare();
  const uint64_t end = position.data_offset + position.data_size;
  const bool wrap = end + kMaxText > kMaxData;
  position = Position{};
  position.data_offset = wrap ? 0 : end;
  position.job = job;
  position.stage = FlightStage::Generating;
  publish();
}

void FlightRecorder::pendingOp(std::string_view op, uint64_t ordinal, const std::vector<uint64_t>& choices) {
  Position& position = prepare();
  const size_t known = position.data_size / sizeof(uint64_t);
  FAULTLINE_CHECK(position.stage == FlightStage::Generating && known <= choices.size(),
                  std::string("a tape only grows while a case is generated"));
  const size_t more = (choices.size() - known) * sizeof(uint64_t);
  if (position.data_size + more <= kMaxText && reserve(position.data_offset + position.data_size + more)) {
    std::memcpy(data() + position.data_offset + position.data_size, choices.data() + known, more);
    position.data_size += more;
  } else {
    position.text_cut = 1;
  }
  putWord(position.op, op);
  position.op_ordinal = ordinal;
  publish();
}

void FlightRecorder::beginJudging(uint64_t job, std::string_view text) {
  Position& position = prepare();
  Position fresh{};
  fresh.data_offset = position.data_offset;
  fresh.data_size = position.data_size;
  fresh.job = job;
  fresh.stage = FlightStage::Judging;
  putData(fresh, text);
  position = fresh;
  publish();
}

void FlightRecorder::step(std::string_view lane, int run, std::string_view phase) {
  Position& position = prepare();
  putWord(position.lane, lane);
  putWord(position.phase, phase);
  position.run = run;
  publish();
}

Result<FlightRecord> readFlightRecord(const std::string& path) {
  const Result<std::string> read = readWholeFile(path, kDataStart + kMaxData);
  if (!read) {
    return tl::make_unexpected(read.error());
  }
  const std::string& bytes = *read;
  if (bytes.size() < kDataStart || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return tl::make_unexpected(Error{ErrorKind::Invalid, "not a flight recorder", path, std::nullopt});
  }
  const auto& header = *reinterpret_cast<const FlightRecorder::Header*>(bytes.data());
  const FlightRecorder::Position& position = header.positions[header.published.load() & 1U];
  const std::string_view data = std::string_view(bytes).substr(kDataStart);

  FlightRecord record;
  record.signal = header.crash.signal.load();
  const uint32_t frames = std::min<uint32_t>(header.crash.frames.load(), CrashNote::kFrames);
  for (uint32_t i = 0; i < frames; ++i) {
    const CrashNote::Frame& frame = header.crash.frame[i];
    record.frames.push_back({takeWord(frame.module), takeWord(frame.symbol), frame.offset});
  }
  if (position.stage != FlightStage::Generating && position.stage != FlightStage::Judging) {
    return record;
  }
  record.stage = position.stage;
  record.job = position.job;
  record.op = takeWord(position.op);
  record.op_ordinal = position.op_ordinal;
  record.lane = takeWord(position.lane);
  record.phase = takeWord(position.phase);
  record.run = position.run;
  record.text_cut = position.text_cut != 0;
  // A worker with a memory bug may have written over its own recorder.
  if (position.data_offset > data.size() || position.data_size > data.size() - position.data_offset) {
    record.text_cut = true;
    return record;
  }
  const std::string_view content = data.substr(position.data_offset, position.data_size);
  if (position.stage == FlightStage::Judging) {
    record.text = content;
  } else {
    record.choices.resize(content.size() / sizeof(uint64_t));
    std::memcpy(record.choices.data(), content.data(), record.choices.size() * sizeof(uint64_t));
  }
  return record;
}

}  // namespace faultline
