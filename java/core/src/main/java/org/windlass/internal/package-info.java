// SPDX-License-Identifier: Apache-2.0
/**
 * What all packages of the library stand on, and no user sees: the native library, memory and its
 * lifetime, the calls in progress, and arithmetic that several packages share. It imports no other
 * package of the library: exceptions are made by a {@link
 * org.windlass.internal.FailureMaker}, dtypes and operations are numbers of the C ABI, and objects
 * of public types are opened by an {@link org.windlass.internal.Access}.
 */
package org.windlass.internal;
