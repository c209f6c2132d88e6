// SPDX-License-Identifier: Apache-2.0
/**
 * Internal base of all packages of the library: native library, memory and its lifetime, calls in
 * progress, and shared arithmetic. Users don't see it. It uses no other package of the library
 * except {@code org.windlass.error}. Dtypes and operations are numbers of the C ABI.
 */
@NullMarked
package org.windlass.internal;

import org.jspecify.annotations.NullMarked;
