// SPDX-License-Identifier: Apache-2.0
/** Represents a request, and the list of its moves. */
package org.windlass.reshard.request;
