// What training needs of libtorch and tch does not bind: hooks that run when a parameter's gradient is ready, gradients
// that live in memory of ours, TorchScript modules with their buffers, and autocast. Plain C functions over opaque pointers.
//
// A function that can fail returns null or false, and leaves its reason in `phalanx_torch_error`, of this thread.

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/export.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

thread_local std::string last_error;

template <typename Body>
auto guarded(Body body, decltype(body()) failed) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error& error) {
    last_error = error.what_without_backtrace();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown exception";
  }
  return failed;
}

// Calls back after the gradient of one parameter was added up.
struct ReadyHook : torch::autograd::PostAccumulateGradHook {
  void (*call)(void*, size_t);
  void* context;
  size_t index;

  ReadyHook(void (*call)(void*, size_t), void* context, size_t index) : call(call), context(context), index(index) {}

  void operator()(const torch::autograd::Variable&) override {
    call(context, index);
  }
};

// A module with its parameters and buffers listed once, those that are shared under their first name.
struct Module {
  torch::jit::Module module;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  std::vector<std::pair<std::string, at::Tensor>> buffers;

  explicit Module(torch::jit::Module loaded) : module(std::move(loaded)) {
    std::unordered_set<const void*> seen;
    for (const auto& named : module.named_parameters(/*recurse=*/true)) {
      if (seen.insert(named.value.unsafeGetTensorImpl()).second) {
        parameters.emplace_back(named.name, named.value);
      }
    }
    for (const auto& named : module.named_buffers(/*recurse=*/true)) {
      if (seen.insert(named.value.unsafeGetTensorImpl()).second) {
        buffers.emplace_back(named.name, named.value);
      }
    }
  }
};

at::Tensor& as_tensor(void* tensor) {
  return *static_cast<at::Tensor*>(tensor);
}

}  // namespace

extern "C" {

const char* phalanx_torch_error() {
  return last_error.c_str();
}

// `call(context, index)` runs on the thread of the backward pass.
bool phalanx_set_ready_hook(void* tensor, void (*call)(void*, size_t), void* context, size_t index) {
  return guarded(
      [&] {
        auto hook = std::make_unique<ReadyHook>(call, context, index);
        torch::autograd::impl::set_post_acc_grad_hooks(as_tensor(tensor), std::move(hook));
        return true;
      },
      false);
}

bool phalanx_clear_ready_hook(void* tensor) {
  return guarded(
      [&] {
        torch::autograd::impl::set_post_acc_grad_hooks(as_tensor(tensor), nullptr);
        return true;
      },
      false);
}

// From now on gradients of `tensor` are added to `gradient`.
bool phalanx_set_gradient(void* tensor, void* gradient) {
  return guarded(
      [&] {
        as_tensor(tensor).mutable_grad() = as_tensor(gradient);
        return true;
      },
      false);
}

bool phalanx_clear_gradient(void* tensor) {
  return guarded(
      [&] {
        as_tensor(tensor).mutable_grad() = at::Tensor();
        return true;
      },
      false);
}

// The values of `tensor` are from now on those of `values`, in their memory.
bool phalanx_set_values(void* tensor, void* values) {
  return guarded(
      [&] {
        as_tensor(tensor).set_data(as_tensor(values));
        return true;
      },
      false);
}

// Sets bf16 autocast of this thread; returns what it was.
bool phalanx_set_autocast(bool is_enabled) {
  const bool before = at::autocast::is_autocast_enabled(at::kCPU);
  at::autocast::set_autocast_enabled(at::kCPU, is_enabled);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  if (!is_enabled) {
    at::autocast::clear_cache();
  }
  return before;
}

void* phalanx_module_load(const char* bytes, size_t length) {
  return guarded(
      [&]() -> void* {
        std::istringstream stream(std::string(bytes, length));
        return new Module(torch::jit::load(stream, c10::Device(c10::kCPU)));
      },
      nullptr);
}

void phalanx_module_free(void* module) {
  delete static_cast<Module*>(module);
}

// Makes a module from TorchScript source of its methods and values of its parameters.
void* phalanx_module_define(
    const char* source,
    const char* const* names,
    void* const* values,
    size_t num_values) {
  return guarded(
      [&]() -> void* {
        torch::jit::Module module("Network");
        for (size_t i = 0; i < num_values; ++i) {
          at::Tensor value = as_tensor(values[i]).detach().clone();
          value.set_requires_grad(true);
          module.register_parameter(names[i], value, /*is_buffer=*/false);
        }
        module.define(source);
        return new Module(module);
      },
      nullptr);
}

size_t phalanx_module_num_parameters(const void* module) {
  return static_cast<const Module*>(module)->parameters.size();
}

size_t phalanx_module_num_buffers(const void* module) {
  return static_cast<const Module*>(module)->buffers.size();
}

const char* phalanx_module_parameter_name(const void* module, size_t index) {
  return static_cast<const Module*>(module)->parameters[index].first.c_str();
}

// A new reference to the same tensor, which the caller owns.
void* phalanx_module_parameter(const void* module, size_t index) {
  return new at::Tensor(static_cast<const Module*>(module)->parameters[index].second);
}

void* phalanx_module_buffer(const void* module, size_t index) {
  return new at::Tensor(static_cast<const Module*>(module)->buffers[index].second);
}

bool phalanx_module_train(void* module, bool is_training) {
  return guarded(
      [&] {
        static_cast<Module*>(module)->module.train(is_training);
        return true;
      },
      false);
}

// The one tensor that `forward` returns.
void* phalanx_module_forward(const void* module, void* const* inputs, size_t num_inputs) {
  return guarded(
      [&]() -> void* {
        // Operators run as they stand: specialising graphs for shapes costs more than it gains where batches differ.
        torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
        std::vector<c10::IValue> arguments;
        arguments.reserve(num_inputs);
        for (size_t i = 0; i < num_inputs; ++i) {
          arguments.emplace_back(as_tensor(inputs[i]));
        }
        auto forward = static_cast<const Module*>(module)->module.get_method("forward");
        c10::IValue output = forward(std::move(arguments));
        TORCH_CHECK(output.isTensor(), "forward must return one tensor, found ", output.tagKind());
        return new at::Tensor(output.toTensor());
      },
      nullptr);
}

// Hands the bytes of the saved module to `take(context, bytes, length)`.
bool phalanx_module_save(const void* module, void (*take)(void*, const char*, size_t), void* context) {
  return guarded(
      [&] {
        std::ostringstream stream;
        static_cast<const Module*>(module)->module.save(stream);
        const std::string bytes = stream.str();
        take(context, bytes.data(), bytes.size());
        return true;
      },
      false);
}

}  // extern "C"
