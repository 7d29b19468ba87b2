// The macros of CUDA's compiler that `cuda_runtime_api.h` uses; function declarations need them empty. PyPI's package
// of the runtime does not have this header, which belongs to the package of the compiler.
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
