// UniqueFd: a file descriptor that closes itself.
//
//   UniqueFd fd(open(path, O_RDWR | O_CLOEXEC));
//   if (!fd.valid()) return MakeSystemError("open", path, errno);

#pragma once

#include <utility>

namespace tandem {

// As close(2).
void CloseDescriptor(int fd);

// Owns one descriptor, or none (-1). Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Returns the descriptor, which the caller closes.
  int release() { return std::exchange(fd_, -1); }
  // Closes the descriptor, if there is one.
  void reset() {
    if (fd_ >= 0) CloseDescriptor(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace tandem
