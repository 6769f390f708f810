// A device of type "cuda" in host memory, for a torch without CUDA.
//
// Each operation without a kernel for every device is computed on the CPU. Before that, its
// arguments are checked as CUDA kernels check them: tensors of two devices, or a generator of the
// CPU, are errors; a number of dimension 0 and indices of `index` may be on the CPU.

#include <ATen/DeviceAccelerator.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Copy.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace {

using at::Tensor;

constexpr c10::DeviceIndex kDevices = 2;
thread_local c10::DeviceIndex current_device = 0;

at::Device device_at(c10::DeviceIndex index) {
  return {at::kCUDA, index};
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return at::kCUDA; }
  at::Device exchangeDevice(at::Device device) const override {
    at::Device old = getDevice();
    setDevice(device);
    return old;
  }
  at::Device getDevice() const override { return device_at(current_device); }
  void setDevice(at::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(at::Device device) const noexcept override {
    if (device.has_index()) current_device = device.index();
  }
  c10::Stream getStream(at::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag)
      const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
};

struct Hooks final : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  int getNumGPUs() const override { return kDevices; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kDevices; }
  c10::DeviceIndex current_device() const override { return current_device_index(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device_index(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return Guard().exchangeDevice(device_at(index)).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return exchangeDevice(index);
  }
  void setCurrentDevice(c10::DeviceIndex index) const override { exchangeDevice(index); }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  static c10::DeviceIndex current_device_index() { return Guard().getDevice().index(); }
};

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    void* data = size ? std::malloc(size) : nullptr;
    return {data, data, &std::free, device_at(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(to, from, size);
  }
};
Memory memory;

// The same numbers as a tensor of the CPU.
Tensor on_cpu(const Tensor& x) {
  if (x.is_cpu()) return x;
  auto options = at::TensorOptions().dtype(x.dtype());
  if (!x.numel()) return at::detail::empty_cpu(x.sizes(), options);
  void* data = static_cast<char*>(x.storage().mutable_data()) + x.storage_offset() * x.itemsize();
  return at::from_blob(data, x.sizes(), x.strides(), options);
}

Tensor empty(
    c10::IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool>,
    std::optional<at::MemoryFormat> format) {
  c10::OptionalDeviceGuard guard(device);
  auto keys = c10::DispatchKeySet(c10::DispatchKey::CUDA);
  return at::detail::empty_generic(size, &memory, keys, at::dtype_or_default(dtype), format);
}

Tensor empty_strided(
    c10::IntArrayRef size,
    c10::IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>,
    std::optional<at::Device> device,
    std::optional<bool>) {
  c10::OptionalDeviceGuard guard(device);
  auto keys = c10::DispatchKeySet(c10::DispatchKey::CUDA);
  return at::detail::empty_strided_generic(size, stride, &memory, keys, at::dtype_or_default(dtype));
}

Tensor& copy_(Tensor& self, const Tensor& source, bool) {
  on_cpu(self).copy_(on_cpu(source));
  return self;
}

const Tensor& resize_(
    const Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(size);
  auto storage = self.storage();
  size_t needed = (self.numel() + self.storage_offset()) * self.itemsize();
  if (storage.nbytes() < needed) {
    auto larger = memory.allocate(needed);
    if (storage.nbytes()) std::memcpy(larger.get(), storage.data(), storage.nbytes());
    storage.set_data_ptr_noswap(std::move(larger));
    storage.set_nbytes(needed);
  }
  return self;
}

Tensor& set_storage_part_(
    Tensor& self,
    at::Storage source,
    int64_t offset,
    c10::IntArrayRef size,
    c10::IntArrayRef stride) {
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_keep_dtype(std::move(source));
  tensor->set_storage_offset(offset);
  if (stride.data())
    tensor->set_sizes_and_strides(size, stride);
  else
    tensor->set_sizes_contiguous(size);
  return self;
}

Tensor& set_storage_(Tensor& self, at::Storage source) {
  int64_t size = source.nbytes() / self.itemsize();
  return set_storage_part_(self, std::move(source), 0, size, {});
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  if (self.sizes() != target.sizes()) resize_(target, self.sizes(), std::nullopt);
  Tensor result = target;
  return copy_(result, self, false);
}

void check_tensor(const Tensor& x, bool numbers_allowed, const std::string& name) {
  if (!x.defined() || (x.is_cuda() && x.device() == device_at(current_device))) return;
  if (x.is_cpu() && numbers_allowed && x.dim() == 0) return;
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, ",
      device_at(current_device), " and ", x.device(), "! (in ", name, ")");
}

void check_list(const c10::IValue& list, bool numbers_allowed, const std::string& name) {
  for (const c10::IValue& x : list.toListRef())
    if (x.isTensor()) check_tensor(x.toTensor(), numbers_allowed, name);
}

// The device of the first tensor on a GPU, or of the argument `device`.
std::optional<at::Device> device_of(at::ArrayRef<c10::IValue> arguments) {
  for (const auto& x : arguments) {
    if (x.isTensor() && x.toTensor().defined() && x.toTensor().is_cuda()) return x.toTensor().device();
    if (x.isDevice() && x.toDevice().is_cuda()) return x.toDevice();
    if (x.isTensorList() || x.isOptionalTensorList())
      for (const c10::IValue& y : x.toListRef())
        if (y.isTensor() && y.toTensor().defined() && y.toTensor().is_cuda()) return y.toTensor().device();
  }
  return std::nullopt;
}

// Operations whose kernels also refuse a tensor of dimension 0 that is on the CPU.
const std::set<std::string> STRICT = {
    "aten::cat", "aten::gather", "aten::scatter", "aten::scatter_add", "aten::index_select",
    "aten::index_copy", "aten::index_add", "aten::embedding", "aten::_fused_adam_",
    "aten::_fused_adamw_", "aten::take", "aten::searchsorted"};

void compute_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::string& name = op.operator_name().name;
  auto arguments = torch::jit::last(*stack, schema.arguments().size());
  c10::OptionalDeviceGuard guard(device_of(arguments));
  bool numbers_allowed = !STRICT.count(name);
  for (size_t i = 0; i < arguments.size(); i++) {
    const auto& x = arguments[i];
    const auto& argument = schema.arguments()[i].name();
    if (x.isTensor()) check_tensor(x.toTensor(), numbers_allowed, name);
    if ((x.isTensorList() || x.isOptionalTensorList()) && argument != "indices")
      check_list(x, numbers_allowed, name);
    if (x.isGenerator())
      TORCH_CHECK(x.toGenerator().device().is_cuda(),
          "Expected a 'cuda' device type for generator but found 'cpu' (in ", name, ")");
  }
  at::native::cpu_fallback(op, stack);
}

int64_t math_attention(
    const Tensor&, const Tensor&, const Tensor&, const std::optional<Tensor>&, double, bool,
    std::optional<double>, bool) {
  return static_cast<int64_t>(sdp::SDPBackend::math);
}

void set_device(int64_t index) {
  TORCH_CHECK(0 <= index && index < kDevices, "CUDA error: invalid device ordinal");
  current_device = static_cast<c10::DeviceIndex>(index);
}

int64_t get_device() {
  return current_device;
}

}  // namespace

namespace at::native {
REGISTER_CUDA_DISPATCH(_fused_sdp_choice_stub, &math_attention)
}

C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// replaces that of torch, if this library is loaded before
std::optional<c10::DeviceType> at::accelerator::getAccelerator(bool) {
  return at::kCUDA;
}

namespace at {
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, Hooks);
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  // torch has kernels of these for every device, which call functions of the device
  for (const char* name : {"convolution", "convolution_backward"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&compute_on_cpu>());
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("copy_", &copy_);
  m.impl("resize_", &resize_);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("set_.source_Storage", &set_storage_);
  m.impl("set_.source_Storage_storage_offset", &set_storage_part_);
}

TORCH_LIBRARY(simulated_cuda, m) {
  m.def("set_device(int index) -> ()", &set_device);
  m.def("get_device() -> int", &get_device);
}
