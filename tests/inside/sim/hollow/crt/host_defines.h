// What `cuda_runtime_api.h` wants of CUDA's compiler: nothing, for the declarations of functions. PyPI's package of the
// runtime leaves this header to the package of the compiler.
#pragma once

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __cudart_builtin__
#define __location__(place)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
